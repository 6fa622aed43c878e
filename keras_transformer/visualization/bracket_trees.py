"""Trees in brackets, as in the Penn Treebank (Marcus et al. 1993), and how far heads agree with
them.
"""

import re
from collections.abc import Sequence

import numpy as np

from pipelines.corpora import line_files

TOKEN = re.compile(r"[()]|[^\s()]+")
# What the treebank writes for brackets in the text.
ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}
# The label of what is not in the text.
NOTHING = "-NONE-"

# Words, and the constituents as (first word, word behind the last).
Tree = tuple[list[str], list[tuple[int, int]]]


def read_trees(path: str, most: int) -> list[Tree]:
    """Read the first trees of a file, one a line.

    Raises:
        ValueError: as `read_tree`.
    """
    return [read_tree(line) for line in line_files.read_lines(path)[:most] if line.strip()]


def read_tree(line: str) -> Tree:
    """Read one tree.

    Args:
        line: such as "(S (NP (DT The) (NN cat)) (VP (VBZ sits)))".

    Returns:
        The words, and the spans of all constituents of at least two words.

    Raises:
        ValueError: if the brackets do not match.
    """
    words = []
    spans = set()
    begins = []
    before = ""
    label = ""
    for token in TOKEN.findall(line):
        if token == "(":
            begins.append(len(words))
            label = ""
        elif token == ")":
            if not begins:
                raise ValueError(f"a tree must open each bracket that it closes. Received: {line}")
            begin = begins.pop()
            if len(words) > begin + 1:
                spans.add((begin, len(words)))
        elif before == "(":
            label = token
        elif label != NOTHING:
            words.append(ESCAPED.get(token, token))
        before = token
    if begins or not words:
        raise ValueError(f"a tree must have words and close each bracket. Received: {line}")
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
