"""Draw one map of attention with its words and numbers (Vaswani et al. 2017, section 3.2.3)."""

from collections.abc import Sequence

import numpy as np

from keras_transformer.visualization.theme import (
    SMALL,
    Theme,
    ink_on,
    new_figure,
    shades,
    width_of,
)

# More columns than this stand closer, with turned words.
FEW = 14
# A smaller weight is not written.
LEAST = 0.1
LABEL = "share of its attention that each word of a row gives to a word of a column"


def draw(columns: Sequence[str], rows: Sequence[str], weights: np.ndarray, theme: Theme):
    """A grid with a row for each word that attends.

    Args:
        columns: S words.
        rows: T words.
        weights: (T, S), the mean of some heads; each row sums to 1.
        theme: the colours.
    """
    is_wide = len(columns) > FEW
    cell = 0.4 if is_wide else 0.8
    turned = 60 if is_wide else 30
    above = np.sin(np.deg2rad(turned)) * max(map(width_of, columns))
    beside = np.cos(np.deg2rad(turned)) * width_of(columns[-1])
    # The label stands below the grid.
    grid = max(cell * len(columns) + beside, width_of(LABEL))
    figure = new_figure(max(map(width_of, rows)) + grid + 0.3, above + 0.34 * len(rows) + 0.7)
    axes = figure.add_subplot()
    axes.imshow(weights, cmap=shades(theme), vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(
        range(len(columns)), columns, rotation=turned, ha="left", rotation_mode="anchor"
    )
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=10)
    for row, column in np.argwhere(weights >= LEAST):
        share = weights[row, column]
        label = f"{share:.2f}".lstrip("0") if is_wide else f"{share:.2f}"
        colour = ink_on(theme, share)
        axes.text(column, row, label, ha="center", va="center", color=colour, fontsize=SMALL)
    axes.set_xlabel(LABEL)
    return figure
