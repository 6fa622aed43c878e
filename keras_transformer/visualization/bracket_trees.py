"""The phrases of trees in brackets (Marcus et al. 1993), and how far heads agree with them."""

import itertools
from collections.abc import Sequence

import numpy as np

from pipelines import trees
from pipelines.corpora import treebank

# Words, and the constituents of several words as (first word, word after the last).
Phrases = tuple[list[str], list[tuple[int, int]]]


def read_phrases(path: str, most: int) -> list[Phrases]:
    """Read the first trees of a file, without those that have no words.

    Raises:
        ValueError: naming the file, the line and what is wrong, if a tree is damaged.
    """
    read = itertools.islice(treebank.read_trees(path), most)
    return [phrases_of(tree) for tree in map(trees.plain, read) if tree]


def phrases_of(tree: trees.Tree) -> Phrases:
    """The words of a tree as they stand in the text, and the spans of its constituents of at least
    two words.

    Args:
        tree: one without traces.
    """
    words = [trees.unescaped(word) for word in tree.words]
    spans = {(begin, end) for _, begin, end in tree.spans() if end > begin + 1}
    return words, sorted(spans)


def together(words: int, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """Which pairs of words belong together: both lie in the smallest constituent of the first.

    Returns:
        Booleans (words, words); a word does not belong to itself.
    """
    belongs = np.zeros((words, words), bool)
    for word in range(words):
        around = [span for span in spans if span[0] <= word < span[1]]
        begin, end = min(around, key=lambda span: span[1] - span[0], default=(word, word))
        belongs[word, begin:end] = True
    np.fill_diagonal(belongs, False)
    return belongs


def agreement(weights: np.ndarray, belongs: np.ndarray) -> np.ndarray:
    """For each word, whether the other word that it attends to most belongs to it.

    Args:
        weights: (..., words, words), between the words of a sentence.
        belongs: what `together` gave.

    Returns:
        (..., words), 1 or 0.
    """
    others = np.where(np.eye(len(belongs), dtype=bool), -np.inf, weights)
    best = others.argmax(axis=-1)
    return np.take_along_axis(np.broadcast_to(belongs, weights.shape), best[..., None], axis=-1)[
        ..., 0
    ].astype(float)


def by_chance(belongs: np.ndarray) -> np.ndarray:
    """What `agreement` is on average if the other word is drawn: (words,)."""
    return belongs.sum(axis=-1) / max(len(belongs) - 1, 1)
