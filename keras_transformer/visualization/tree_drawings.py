"""Draw constituency trees, one below another in a picture, or as text for a terminal (Vaswani et
al. 2017, section 6.3, for the parser that writes them).
"""

import dataclasses
import functools
import importlib
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from keras_transformer.visualization.picture_file import write_picture
from keras_transformer.visualization.theme import Theme, new_canvas, width_of
from pipelines import needing
from pipelines.trees import WORD, Tree, fold, parse, unescaped

# Most levels of a tree that is drawn. Only an untrained parser writes deeper ones.
DEEPEST = 200
# Inches.
GAP = 0.16
LEVEL = 0.42
# Half the height of a text, with the room between it and a line.
HALF = 0.13
MARGIN = 0.25
BETWEEN_TREES = 0.35
# Most trees in one picture.
MOST = 20


def _levels(tree):
    return fold(tree, lambda inner, levels: 1 if inner.is_preterminal else 1 + max(levels))


def require_nltk() -> None:
    """Raise an error if nltk, which draws for a terminal, is not installed."""
    with needing("parsing", "--tree_format=drawn"):
        importlib.import_module("nltk")


def as_text(tree: Tree) -> str:
    """Draw a tree from its root down to its words, by nltk, without parts of speech. A tree that is
    too deep stays in brackets, on one line.
    """
    require_nltk()
    if _levels(tree) > DEEPEST:
        return str(tree)
    from nltk.tree import Tree as Drawable
    from nltk.tree.prettyprinter import TreePrettyPrinter

    if tree.is_preterminal:
        return unescaped(tree.children[0])
    numbers = iter(range(len(tree.words)))

    def numbered(inner):
        # nltk keeps the order of words and constituents only if the words are numbers.
        if inner.is_preterminal:
            return next(numbers)
        return Drawable(inner.label, [numbered(child) for child in inner.children])

    words = [unescaped(word) for word in tree.words]
    text = TreePrettyPrinter(numbered(tree), words).text(unicodelines=True)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def all_as_text(trees: Sequence[str]) -> str:
    """Draw trees in brackets, each followed by an empty line; of an empty string, this alone."""
    return "".join(f"{as_text(parse(tree))}\n\n" if tree else "\n\n" for tree in trees)


@dataclasses.dataclass(frozen=True)
class Place:
    """The place of a label or a word: its middle from the tree's left side, its level (0 for the
    root, the deepest for all words) and its parent (None for the root).
    """

    text: str
    is_word: bool
    middle: float
    level: int
    parent: "Place | None"


class Column(NamedTuple):
    """The room for a label or a word and all that is below it: the text on top, its middle from the
    column's left side, and the columns below, each with its distance from that side.
    """

    text: str
    width: float
    middle: float
    inner: list[tuple[float, "Column"]]


def places(tree: Tree, width_of: Callable[[str], float], gap: float) -> list[Place]:
    """Place labels and words so that no two touch. A parent comes before its children.

    Each constituent has its own column, at least as wide as its label and its children's columns
    together, with a gap between two texts. Words are on one line below all labels. A part of speech
    XX is left out. server/page/tree.js does the same in the browser.
    """
    if (levels := _levels(tree)) > DEEPEST:
        raise ValueError(
            f"a drawing has room for {DEEPEST} levels. Received: a tree of {levels}. Pass "
            "--tree_format=brackets."
        )
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


def _column(tree, width_of, gap):
    if isinstance(tree, str) or (tree.is_preterminal and tree.label == WORD):
        text = unescaped(tree if isinstance(tree, str) else tree.children[0])
        width = width_of(text) + gap
        return Column(text, width, width / 2, [])
    inner = []
    width = 0.0
    for child in tree.children:
        inner.append((width, _column(child, width_of, gap)))
        width += inner[-1][1].width
    middles = [begin + column.middle for begin, column in inner]
    # The label is midway between the first and last child. It may be wider than the children.
    middle = (middles[0] + middles[-1]) / 2
    half = (width_of(tree.label) + gap) / 2
    left = max(half - middle, 0.0)
    right = max(half - (width - middle), 0.0)
    inner = [(left + begin, column) for begin, column in inner]
    return Column(tree.label, left + width + right, left + middle, inner)


def _depth(column):
    """Return the level of the words."""
    return max((1 + _depth(inner) for _, inner in column.inner), default=0)


def write(path: str | pathlib.Path, trees: Sequence[str], theme: str) -> None:
    """Draw trees in brackets into a file by `write_picture`; an empty string is no tree."""
    write_picture(path, functools.partial(draw, [parse(tree) for tree in trees if tree]), theme)


def refuse_number(count: int) -> None:
    """Refuse to draw no trees, or more than a picture has room for."""
    if not 1 <= count <= MOST:
        raise ValueError(
            f"a picture has room for 1 to {MOST} trees. Received: {count:,} sentences. Pass "
            f"{'fewer' if count else 'some'} lines, or --tree_format=brackets."
        )


def draw(trees: Sequence[Tree], theme: Theme):
    """Draw each tree: labels, words below them, and right-angled lines between them."""
    refuse_number(len(trees))
    placed = [places(tree, width_of, GAP) for tree in trees]
    widest = max(
        place.middle + (width_of(place.text) + GAP) / 2 for tree in placed for place in tree
    )
    heights = [LEVEL * max(place.level for place in tree) + 2 * HALF for tree in placed]
    width = widest + 2 * MARGIN
    height = sum(heights) + BETWEEN_TREES * (len(trees) - 1) + 2 * MARGIN
    figure, axes = new_canvas(width, height)
    top = MARGIN + HALF
    for tree, size in zip(placed, heights, strict=True):
        _draw_tree(axes, tree, top, theme)
        top += size + BETWEEN_TREES
    return figure


def _draw_tree(axes, placed, top, theme):
    for place in placed:
        x = MARGIN + place.middle
        y = top + LEVEL * place.level
        colour = theme.ink if place.is_word else theme.series[0]
        axes.text(x, y, place.text, ha="center", va="center", color=colour)
        if place.parent:
            above = MARGIN + place.parent.middle
            start = top + LEVEL * place.parent.level + HALF
            bend = top + LEVEL * (place.parent.level + 0.5)
            axes.plot(
                (above, above, x, x),
                (start, bend, bend, y - HALF),
                color=theme.soft,
                linewidth=0.8,
                solid_joinstyle="round",
            )
