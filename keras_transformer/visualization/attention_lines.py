"""Draw the heads of one layer as lines between two columns of words (Vaswani et al. 2017, figures
3 to 5).
"""

from collections.abc import Sequence

import numpy as np

from keras_transformer.visualization.attended import TITLES, Attended
from keras_transformer.visualization.theme import TEXT, Theme, looks, new_figure, width_of

ROW = 0.25
BETWEEN = 3.4
# Inches of the legend that a head takes.
LEGEND = 0.95
# A weaker weight is not drawn.
LEAST = 0.04


def lines(weights: np.ndarray, rows: Sequence[int]) -> list[tuple[int, int, int, float]]:
    """The lines to draw: (head, row, column, weight), weak ones first, so that strong ones lie on
    top.

    Args:
        weights: (h, T, S), of the heads that are drawn.
        rows: which rows to draw the lines of.
    """
    strong = [place for place in np.argwhere(weights >= LEAST) if place[1] in set(rows)]
    found = [(int(h), int(t), int(s), float(weights[h, t, s])) for h, t, s in strong]
    return sorted(found, key=lambda line: line[-1])


def rows_of(found: Attended, word: str | None) -> list[int]:
    """The rows whose word is `word`; None: all.

    Raises:
        ValueError: if there is none.
    """
    rows = [row for row, one in enumerate(found.rows) if word in (None, one)]
    if not rows:
        raise ValueError(
            f"--from_word must be one of the words that attend: {' '.join(found.rows)}. Received: "
            f"--from_word={word}."
        )
    return rows


def draw(found: Attended, layer: int, heads: Sequence[int], rows: Sequence[int], theme: Theme):
    """What attends on the left, what it attends to on the right; a colour for each head, opacity
    is the weight.

    Args:
        found: the weights.
        layer, heads: indices of what is drawn.
        rows: those whose lines are drawn.
        theme: the colours.

    Raises:
        ValueError: if there are more heads than colours and styles.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    figure, axes = _columns(found)
    look = looks(theme, len(heads))
    shifts = np.linspace(-0.24, 0.24, len(heads)) if len(heads) > 1 else [0.0]
    ends = []
    inks = []
    for head, row, column, weight in lines(found.weights[layer][list(heads)], rows):
        ends.append(((0, row + shifts[head]), (1, column + shifts[head])))
        colour, style = look[head]
        inks.append((to_rgba(colour, min(weight, 1.0)), style))
    how = {"colors": [ink for ink, _ in inks], "linestyles": [style for _, style in inks]}
    axes.add_collection(LineCollection(ends, linewidths=1.6, **how))
    handles = [axes.plot([], [], style, color=ink, linewidth=3)[0] for ink, style in look]
    names = [f"head {head + 1}" for head in heads]
    columns = min(len(heads), int(figure.get_figwidth() / LEGEND))
    figure.legend(handles, names, loc="outside lower center", ncols=columns)
    axes.set_title(f"{TITLES[found.stack]}, layer {layer + 1}")
    return figure


def _columns(found):
    """A figure with both columns of words, lines being drawn between x = 0 and x = 1."""
    sides = (found.rows, found.columns)
    widths = [max(width_of(word) for word in words) + 0.1 for words in sides]
    longest = max(map(len, sides))
    figure = new_figure(max(sum(widths) + BETWEEN, 5.0), ROW * longest + 1.1)
    axes = figure.add_subplot()
    for words, x, align in ((found.rows, -0.02, "right"), (found.columns, 1.02, "left")):
        for place, text in enumerate(words):
            axes.text(x, place, text, ha=align, va="center", fontsize=TEXT)
    axes.set_xlim(-widths[0] / BETWEEN, 1 + widths[1] / BETWEEN)
    axes.set_ylim(longest - 0.4, -0.6)
    axes.set_axis_off()
    return figure, axes
