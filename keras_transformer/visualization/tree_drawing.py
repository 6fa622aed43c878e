"""Draw constituency trees, one below the other."""

import functools
import pathlib
from collections.abc import Sequence

from keras_transformer.visualization.picture_file import write_picture
from keras_transformer.visualization.theme import TEXT, Theme, new_figure, width_of
from keras_transformer.visualization.tree_layout import places
from pipelines.trees import Tree, parse

# Inches.
GAP = 0.16
LEVEL = 0.42
# Half the height of a text, with the room between it and a line.
HALF = 0.13
MARGIN = 0.25
BETWEEN_TREES = 0.35
# Of trees in one picture. A picture of many thousand pixels is not looked at.
MOST = 20


def write(path: str | pathlib.Path, trees: Sequence[str], theme: str) -> None:
    """Draw trees in brackets into a file; an empty string is none.

    Args:
        path, theme: as of `write_picture`.
        trees: at least one that is not empty.

    Raises:
        ValueError: as `draw` and `write_picture`.
    """
    found = [parse(tree) for tree in trees if tree]
    write_picture(path, functools.partial(draw, found), theme)


def draw(trees: Sequence[Tree], theme: Theme):
    """Labels, words below them, and lines that go down and aside.

    Args:
        trees: at least one.
        theme: its colours.

    Raises:
        ValueError: if there are no trees, or too many for one picture.
    """
    refuse_number(len(trees))
    placed = [places(tree, _width_of, GAP) for tree in trees]
    widest = max(_right(tree) for tree in placed)
    heights = [LEVEL * max(place.level for place in tree) + 2 * HALF for tree in placed]
    width = widest + 2 * MARGIN
    height = sum(heights) + BETWEEN_TREES * (len(trees) - 1) + 2 * MARGIN
    figure = new_figure(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    figure.set_layout_engine("none")
    top = MARGIN + HALF
    for tree, size in zip(placed, heights, strict=True):
        _draw_tree(axes, tree, top, theme)
        top += size + BETWEEN_TREES
    return figure


def refuse_number(count: int) -> None:
    """Refuse a number of trees that a picture has no room for."""
    if not 1 <= count <= MOST:
        raise ValueError(
            f"a picture has room for 1 to {MOST} trees. Received: {count:,} sentences. Pass "
            f"{'fewer' if count else 'some'} lines, or --tree_format=brackets."
        )


def _width_of(text):
    return width_of(text, TEXT)


def _right(placed):
    return max(place.middle + (_width_of(place.text) + GAP) / 2 for place in placed)


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
