"""The weights of a model's heads for one sentence, with the words that they lie between (Vaswani
et al. 2017, section 3.2.3).
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from keras_transformer.visualization.words import SPECIAL, between_words, words_of

STACKS = ("encoder", "decoder", "cross")
TITLES = {
    "encoder": "self-attention of the encoder",
    "decoder": "self-attention of the decoder",
    "cross": "attention of the decoder to the source",
}
# How far the sum of a row may be from 1.
TOLERANCE = 1e-3


@dataclasses.dataclass(frozen=True)
class Attended:
    """What the heads of one stack attend to.

    Attributes:
        stack: "encoder", "decoder" or "cross".
        rows: what attends, T strings: in a decoder what each step writes.
        columns: what is attended to, S strings: in a decoder's self-attention what it reads, which
            is what it wrote one step before.
        weights: (N, h, T, S), each row sums to 1.
    """

    stack: str
    rows: list[str]
    columns: list[str]
    weights: np.ndarray

    def layer(self, number: int | None) -> int:
        """The index of layer `number`, which counts from 1; None: the last but one, or the only
        one, which links words best (Garg et al. 2019).

        Raises:
            ValueError: if there is no such layer.
        """
        layers = len(self.weights)
        number = max(layers - 1, 1) if number is None else number
        if not 1 <= number <= layers:
            raise ValueError(
                f"--layer must be in 1 to {layers}, the layers of the model. Received: "
                f"--layer={number}."
            )
        return number - 1

    def heads(self, numbers: Sequence[str]) -> list[int]:
        """The indices of heads, whose numbers count from 1; none: all of them.

        Raises:
            ValueError: if there is no such head.
        """
        most = self.weights.shape[1]
        allowed = [str(number) for number in range(1, most + 1)]
        if not set(numbers) <= set(allowed):
            raise ValueError(
                f"--heads must be numbers in 1 to {most}, joined by commas. Received: "
                f"--heads={','.join(numbers)}."
            )
        return [allowed.index(number) for number in numbers or allowed]


def attended(
    attention: Mapping[str, np.ndarray | list[str]], stack: str | None, by_pieces: bool = False
) -> Attended:
    """Choose one stack of what `Translator.attention` gives.

    Args:
        attention: what it gave.
        stack: "encoder", "decoder" or "cross"; None: "cross", or the only one.
        by_pieces: keep pieces, instead of joining them to words.

    Raises:
        ValueError: if the stack has no weights between positions.
    """
    had = [name for name in reversed(STACKS) if name in attention]
    stack = stack or had[0]
    if stack not in had:
        raise ValueError(
            f"the model has no {TITLES[stack]}. Received: --stack={stack}. Try --stack={had[0]}."
        )
    weights = np.asarray(attention[stack], np.float64)
    others = [f"Try --stack={name}." for name in had if name != stack]
    require_shares(weights, stack, *others[:1])
    rows, columns = pieces_of(attention, stack)
    row_words, row_numbers = _labels(rows, by_pieces)
    column_words, column_numbers = _labels(columns, by_pieces)
    weights = between_words(weights, row_numbers, column_numbers)
    return Attended(stack, row_words, column_words, weights)


def pieces_of(attention: Mapping[str, list[str]], stack: str) -> tuple[list[str], list[str]]:
    """The pieces that rows and columns of a stack's weights belong to, T and S strings."""
    source = attention["source_pieces"]
    target = attention["target_pieces"]
    read = ["<s>", *target[:-1]]
    return {"encoder": (source, source), "decoder": (target, read), "cross": (target, source)}[
        stack
    ]


def are_shares(weights: np.ndarray) -> bool:
    """Whether weights (..., T, S) are shares of a whole: each row sums to 1, none is negative."""
    off = np.abs(weights.sum(axis=-1) - 1).max()
    return bool(off <= TOLERANCE and weights.min() >= -TOLERANCE)


def require_shares(weights: np.ndarray, stack: str, remedy: str = "") -> None:
    """Refuse weights that are no shares of a whole, such as those of low-rank attention.

    Args:
        weights: (..., T, S).
        stack: whose they are.
        remedy: what the error advises.

    Raises:
        ValueError: if a row does not sum to 1, or a weight is negative.
    """
    if not are_shares(weights):
        raise ValueError(
            f"the {TITLES[stack]} has no weights between positions: what it applies to the values "
            f"is negative or does not sum to 1. {remedy}".rstrip()
        )


def _labels(pieces, by_pieces):
    if by_pieces:
        return [SPECIAL.get(piece, piece) for piece in pieces], range(len(pieces))
    return words_of(pieces)
