"""Draw the attention of all heads, a map for each (Vaswani et al. 2017, appendix)."""

import numpy as np

from keras_transformer.visualization.attended import TITLES, Attended
from keras_transformer.visualization.theme import SMALL, TEXT, Theme, new_figure, shades, width_of

# Inches of a map's side, and the least of a row that has room for its word.
SIDES = (1.3, 3.0)
ROW = 0.115


def draw(found: Attended, theme: Theme):
    """A grid of maps, a row for each layer and a column for each head. Dark is much in the light
    theme, bright in the dark one; all maps have one scale.
    """
    layers, heads, height, width = found.weights.shape
    side = float(np.clip(ROW * max(height, width), *SIDES))
    has_room = side / max(height, width) >= ROW * 0.95
    labels = max(width_of(word, SMALL - 1) for word in [*found.rows, *found.columns])
    margin = labels + 0.5 if has_room else 0.8
    title = f"{TITLES[found.stack]}: {height} rows attend to {width} columns"
    wide = max(heads * (side + 0.15) + margin + 0.3, width_of(title) + 0.4)
    figure = new_figure(wide, layers * (side + 0.15) + margin + 1.0)
    grid = figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True)
    for (layer, head), axes in np.ndenumerate(grid):
        weights = found.weights[layer, head]
        image = axes.imshow(weights, cmap=shades(theme), vmin=0, vmax=1, aspect="auto")
        axes.tick_params(length=0, labelbottom=False, labelsize=SMALL - 1)
        if not layer:
            axes.set_title(f"head {head + 1}")
            axes.tick_params(labeltop=True)
        if not head:
            axes.set_ylabel(f"layer {layer + 1}")
        if has_room:
            axes.set_xticks(range(width), found.columns, rotation=90)
            axes.set_yticks(range(height), found.rows)
    figure.suptitle(title, fontsize=TEXT)
    bar = figure.colorbar(image, ax=grid, fraction=0.03, pad=0.01, aspect=40)
    bar.set_label("share of a row's attention")
    return figure
