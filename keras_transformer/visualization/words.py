"""Pieces joined to words, and attention between pieces to attention between words."""

import re
from collections.abc import Sequence

import numpy as np

from pipelines.vocabularies.vocabulary import SPACE
from pipelines.vocabularies.word_pieces import FIRST, LAST, SUFFIX

# How special pieces are shown. Each is a word of its own.
SPECIAL = {"<s>": "(start)", "</s>": "(end)", FIRST: "(start)", LAST: "(end)"}
BYTES = re.compile(r"(?:<0x[0-9A-F]{2}>)+")


def words_of(pieces: Sequence[str]) -> tuple[list[str], list[int]]:
    """Join pieces to words.

    Args:
        pieces: strings; "▁" begins a word, or, after "[CLS]", what has no "##" before it.

    Returns:
        The words, and for each piece the number of its word.
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
    return [shown(group) for group in groups], numbers


def _as_sentencepiece(piece):
    """A word piece of BERT in the way in which sentencepiece would write it."""
    if piece in SPECIAL:
        return piece
    return piece.removeprefix(SUFFIX) if piece.startswith(SUFFIX) else f"{SPACE}{piece}"


def shown(pieces: str) -> str:
    """The text of joined pieces: spaces in the places of "▁", letters in those of bytes."""
    text = BYTES.sub(_letters, pieces)
    return text.replace(SPACE, " ").strip() or text


def _letters(match):
    numbers = re.findall("[0-9A-F]{2}", match[0])
    return bytes(int(number, 16) for number in numbers).decode("utf-8", errors="replace")


def between_words(
    attention: np.ndarray, row_words: Sequence[int], column_words: Sequence[int]
) -> np.ndarray:
    """Attention between words: a word's row is the mean of its pieces' rows, and it gets the sum
    of what its pieces get. So each row still sums to 1.

    Args:
        attention: (..., T, S), between pieces.
        row_words: the word of each of T pieces.
        column_words: the word of each of S pieces.

    Returns:
        (..., T', S').
    """
    to_rows = np.eye(max(row_words) + 1)[list(row_words)]
    to_columns = np.eye(max(column_words) + 1)[list(column_words)]
    means = to_rows.T / to_rows.sum(axis=0)[:, None]
    return means @ np.asarray(attention, np.float64) @ to_columns
