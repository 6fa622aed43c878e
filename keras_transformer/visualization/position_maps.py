"""Draw what a model knows positions by (Vaswani et al. 2017, section 3.5)."""

from collections.abc import Sequence

import numpy as np

from keras_transformer.visualization.position_values import Map
from keras_transformer.visualization.theme import Theme, new_figure, opposites

MOST_COLUMNS = 3


def draw(maps: Sequence[Map], theme: Theme):
    """A panel for each map. Colours tell positive numbers from negative ones; 0 is the paper."""
    columns = min(len(maps), MOST_COLUMNS)
    lines = -(-len(maps) // columns)
    figure = new_figure(4.6 * columns, (3.8 if lines == 1 else 2.6) * lines)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for one, axes in zip(maps, panels, strict=False):
        _panel(figure, axes, one, theme)
    for axes in panels[len(maps) :]:
        axes.set_axis_off()
    return figure


def _panel(figure, axes, one, theme):
    from matplotlib.ticker import MaxNLocator

    height, width = one.values.shape
    most = np.abs(one.values).max() or 1.0
    left = one.first_column - 0.5
    top = one.first_row - 0.5
    image = axes.imshow(
        one.values,
        cmap=opposites(theme),
        vmin=-most,
        vmax=most,
        aspect="auto",
        interpolation="nearest",
        extent=(left, left + width, top + height, top),
    )
    axes.set(title=one.title, xlabel=one.columns, ylabel=one.rows)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    figure.colorbar(image, ax=axes)
