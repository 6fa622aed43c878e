"""The ids of a vocabulary that stand for no text (Vaswani et al. 2017, section 5.1)."""

import dataclasses

import numpy as np

# Every vocabulary reserves these: padding, unknown piece, beginning and end of a sentence.
PAD, UNK, BOS, EOS = range(4)
NO_SUCH_ID = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Marks:
    """What an encoder-only model reads around and inside a text (Devlin et al. 2019, section 3).

    Attributes:
        first: stands before every text; a text is classified by its state.
        last: comes after every text.
        mask: stands for a piece that is hidden.
        name: how a hidden piece is written in text.
        ordinary: ids of the pieces of text, integers (pieces,).
        space: of a lone space, which is left out before a hidden piece: that may begin with one.
            `NO_SUCH_ID` if the vocabulary has none.
    """

    first: int
    last: int
    mask: int
    name: str
    ordinary: np.ndarray
    space: int = NO_SUCH_ID
