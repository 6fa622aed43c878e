"""The marks around and inside a text that an encoder-only model reads (Devlin et al. 2019, "BERT:
Pre-training of Deep Bidirectional Transformers for Language Understanding", section 3).
"""

import dataclasses

import numpy as np

NO_SUCH_ID = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Marks:
    """The ids of a vocabulary that stand for no text, by what they are for.

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
