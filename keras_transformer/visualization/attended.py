"""Attention weights between the words of a sentence (Vaswani et al. 2017, section 3.2.3)."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from pipelines.vocabularies.vocabulary import SPACE
from pipelines.vocabularies.word_pieces import FIRST, LAST, SUFFIX

STACKS = ("encoder", "decoder", "cross")
TITLES = {
    "encoder": "self-attention of the encoder",
    "decoder": "self-attention of the decoder",
    "cross": "attention of the decoder to the source",
}
# Allowed difference between the sum of a row and 1.
TOLERANCE = 1e-3
# Special pieces -> the words that stand for them.
SPECIAL = {"<s>": "(start)", "</s>": "(end)", FIRST: "(start)", LAST: "(end)"}
BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


@dataclasses.dataclass(frozen=True)
class Attended:
    """What the heads of one stack attend to.

    Attributes:
        stack: "encoder", "decoder" or "cross".
        rows: T words that attend; in a decoder, the word that each step writes.
        columns: S words that are attended to; in a decoder's self-attention, the word that each
            step reads, which is the one written a step before.
        weights: (N, h, T, S), each row sums to 1.
    """

    stack: str
    rows: list[str]
    columns: list[str]
    weights: np.ndarray

    @classmethod
    def of(
        cls, attention: Mapping[str, np.ndarray | list[str]], stack: str | None, by_pieces=False
    ) -> Self:
        """Select a stack of what `Translator.attention` returned; None: "cross", or the only one.
        With `by_pieces`, keep pieces instead of joining them to words.
        """
        stacks = [name for name in reversed(STACKS) if name in attention]
        stack = stack or stacks[0]
        if stack not in stacks:
            raise ValueError(
                f"the model has no {TITLES[stack]}. Received: --stack={stack}. Try "
                f"--stack={stacks[0]}."
            )
        weights = np.asarray(attention[stack], np.float64)
        remedies = [f"Try --stack={name}." for name in stacks if name != stack]
        require_shares(weights, stack, *remedies[:1])
        source = attention["source_pieces"]
        target = attention["target_pieces"]
        rows, row_words = _labels(source if stack == "encoder" else target, by_pieces)
        inputs = ["<s>", *target[:-1]] if stack == "decoder" else source
        columns, column_words = _labels(inputs, by_pieces)
        return cls(stack, rows, columns, between_words(weights, row_words, column_words))

    def layer(self, number: int | None) -> int:
        """Return the index of layer `number`, counted from 1; None: the last but one (or the only
        one), which aligns words best (Garg et al. 2019).
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
        """Return the indices of heads from their numbers, counted from 1, each once; none: all."""
        most = self.weights.shape[1]
        allowed = [str(number) for number in range(1, most + 1)]
        if not set(numbers) <= set(allowed):
            raise ValueError(
                f"--heads must be numbers in 1 to {most}, joined by commas. Received: "
                f"--heads={','.join(numbers)}."
            )
        return [allowed.index(number) for number in dict.fromkeys(numbers or allowed)]


def are_shares(weights: np.ndarray) -> bool:
    """Return whether each row of weights (..., T, S) sums to 1 and none is negative."""
    off = np.abs(weights.sum(axis=-1) - 1).max()
    return bool(off <= TOLERANCE and weights.min() >= -TOLERANCE)


def require_shares(weights: np.ndarray, stack: str, remedy: str = "") -> None:
    """Refuse weights (..., T, S) that `are_shares` rejects, such as those of low-rank attention."""
    if not are_shares(weights):
        raise ValueError(
            f"the {TITLES[stack]} has no weights between positions: what it applies to the values "
            f"is negative or does not sum to 1. {remedy}".rstrip()
        )


def _labels(pieces, by_pieces):
    if by_pieces:
        return [SPECIAL.get(piece, piece) for piece in pieces], range(len(pieces))
    return words_of(pieces)


def words_of(pieces: Sequence[str]) -> tuple[list[str], list[int]]:
    """Join pieces to words and return these, and for each piece the index of its word. "▁" begins a
    word; in a text that begins with "[CLS]", any piece without "##" does.
    """
    if pieces and pieces[0] == FIRST:
        pieces = [_as_sentencepiece(piece) for piece in pieces]
    groups = []
    numbers = []
    for place, piece in enumerate(pieces):
        after_special = place > 0 and pieces[place - 1] in SPECIAL
        if not groups or piece.startswith(SPACE) or piece in SPECIAL or after_special:
            groups.append("")
        groups[-1] += SPECIAL.get(piece, piece)
        numbers.append(len(groups) - 1)
    return [plain_text(group) for group in groups], numbers


def _as_sentencepiece(piece):
    """Rewrite a word piece of BERT in the notation of SentencePiece."""
    if piece in SPECIAL:
        return piece
    return piece.removeprefix(SUFFIX) if piece.startswith(SUFFIX) else f"{SPACE}{piece}"


def plain_text(pieces: str) -> str:
    """Return the text of joined pieces: "▁" becomes a space, and bytes become letters."""
    text = BYTES.sub(
        lambda match: bytes.fromhex(re.sub("<0x|>", "", match[0])).decode(errors="replace"), pieces
    )
    return text.replace(SPACE, " ").strip() or text


def between_words(
    attention: np.ndarray, row_words: Sequence[int], column_words: Sequence[int]
) -> np.ndarray:
    """Convert attention between pieces (..., T, S) to that between words (..., T', S'). Average the
    rows of a word's pieces and add their columns, so that each row still sums to 1.
    """
    to_rows = np.eye(max(row_words) + 1)[list(row_words)]
    to_columns = np.eye(max(column_words) + 1)[list(column_words)]
    means = to_rows.T / to_rows.sum(axis=0)[:, None]
    return means @ np.asarray(attention, np.float64) @ to_columns
