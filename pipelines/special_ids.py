"""The ids of a vocabulary with a special meaning (Vaswani et al. 2017, section 5.1)."""

import dataclasses

import numpy as np

# Every vocabulary reserves these: padding, unknown piece, beginning and end of a sentence.
PAD, UNK, BOS, EOS = range(4)
NO_SUCH_ID = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Marks:
    """The special ids of an encoder-only model (Devlin et al. 2019, section 3).

    Attributes:
        first: id before every text, whose state classifies the text ([CLS]).
        last: id after every text ([SEP]).
        mask: id in place of a hidden piece ([MASK]).
        name: how a hidden piece is written in text.
        ordinary: ids of the pieces of text, integers (pieces,).
        space: id of a lone space, or `NO_SUCH_ID`. It is dropped before a hidden piece, which may
            itself begin with a space.
    """

    first: int
    last: int
    mask: int
    name: str
    ordinary: np.ndarray
    space: int = NO_SUCH_ID
