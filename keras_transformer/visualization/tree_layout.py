"""Where the labels and words of a constituency tree stand in a picture."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from pipelines.trees import Tree, fold, unescaped
from pipelines.trees.linearization import WORD

# Levels of a tree that can be drawn. Only an untrained parser writes more.
DEEPEST = 200


@dataclasses.dataclass(frozen=True)
class Place:
    """A label or a word.

    Attributes:
        text: what it says.
        is_word: whether it is a word.
        middle: of the text, from the left side of the tree.
        level: 0 at the root. That of all words is the deepest.
        parent: what it hangs on, None at the root.
    """

    text: str
    is_word: bool
    middle: float
    level: int
    parent: "Place | None"


class Column(NamedTuple):
    """The room of a label or a word and of all that is below it.

    Attributes:
        text: what stands on top of it.
        width: its width.
        middle: of the text, from its left side.
        inner: the columns below, each with its left side, from this one's.
    """

    text: str
    width: float
    middle: float
    inner: list[tuple[float, "Column"]]


def places(tree: Tree, width_of: Callable[[str], float], gap: float) -> list[Place]:
    """Give each label and word a place, so that no two touch. A parent comes before its children.

    Each constituent has a column of its own, as wide as its label and as its children's columns.
    Words stand on one line below all labels. A part of speech is left out if it is XX.

    Args:
        tree: the tree.
        width_of: how wide a text is.
        gap: the room between two texts.

    Raises:
        ValueError: if the tree is too deep to be drawn.
    """
    refuse_depth(tree)
    root = _column(tree, width_of, gap)
    deepest = _depth(root)
    placed = []

    def place(column, left, level, parent):
        is_word = not column.inner
        level = deepest if is_word else level
        here = Place(column.text, is_word, left + column.middle, level, parent)
        placed.append(here)
        for begin, inner in column.inner:
            place(inner, left + begin, level + 1, here)

    place(root, 0.0, 0, None)
    return placed


def refuse_depth(tree: Tree) -> None:
    """Raise ValueError if the tree is too deep to be drawn."""
    levels = fold(tree, lambda inner, made: 1 if inner.is_preterminal else 1 + max(made))
    if levels > DEEPEST:
        raise ValueError(
            f"a drawing has room for {DEEPEST} levels. Received: a tree of {levels}. Pass "
            "--tree_format=brackets."
        )


def _column(tree, width_of, gap):
    if isinstance(tree, str) or (tree.is_preterminal and tree.label == WORD):
        # XX stands for its word.
        text = unescaped(tree if isinstance(tree, str) else tree.children[0])
        width = width_of(text) + gap
        return Column(text, width, width / 2, [])
    inner = []
    needed = 0.0
    for child in tree.children:
        inner.append((needed, _column(child, width_of, gap)))
        needed += inner[-1][1].width
    middles = [begin + column.middle for begin, column in inner]
    # Between the first and the last child. A wide label may stick out on either side.
    middle = (middles[0] + middles[-1]) / 2
    half = (width_of(tree.label) + gap) / 2
    left = max(half - middle, 0.0)
    right = max(half - (needed - middle), 0.0)
    inner = [(left + begin, column) for begin, column in inner]
    return Column(tree.label, left + needed + right, left + middle, inner)


def _depth(column):
    """The level of the words."""
    return max((1 + _depth(inner) for _, inner in column.inner), default=0)
