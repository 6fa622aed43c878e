"""Draw measures of all heads: a map for each measure and stack (Vaswani et al. 2017, appendix)."""

from collections.abc import Mapping

import numpy as np

from keras_transformer.visualization.attended import STACKS
from keras_transformer.visualization.theme import SMALL, Theme, ink_on, new_figure, shades

CELL = (0.42, 0.3)


def draw(found: Mapping[str, Mapping[str, np.ndarray]], theme: Theme):
    """A column for each measure, a row for each stack; layers below each other, heads side by
    side. Each measure has a scale of its own, from its least to its greatest value.
    """
    stacks = [stack for stack in STACKS if any(stack in one for one in found.values())]
    layers, heads = next(one[stacks[0]].shape for one in found.values() if stacks[0] in one)
    # A measure may lack a stack, whose name then stands beside the next one.
    first = {
        stack: next(place for place, one in enumerate(found.values()) if stack in one)
        for stack in stacks
    }
    width = len(found) * max(heads * CELL[0] + 0.35, 1.45) + 1.0
    figure = new_figure(width, len(stacks) * (layers * CELL[1] + 0.75) + 0.3)
    grid = figure.subplots(len(stacks), len(found), squeeze=False)
    for column, (name, of_stacks) in enumerate(found.items()):
        numbers = np.concatenate([values.ravel() for values in of_stacks.values()])
        for row, stack in enumerate(stacks):
            axes = grid[row, column]
            if stack not in of_stacks:
                axes.set_axis_off()
                continue
            _map(axes, of_stacks[stack], (numbers.min(), numbers.max()), theme)
            axes.set_title(name, fontsize=SMALL + 1)
            axes.set_xlabel("head", fontsize=SMALL)
            if column == first[stack]:
                axes.set_ylabel(f"{stack}\nlayer")
    return figure


def _map(axes, values, limits, theme):
    least, most = limits
    axes.imshow(values, cmap=shades(theme), vmin=least, vmax=most, aspect="auto")
    layers, heads = values.shape
    axes.set_xticks(range(heads), range(1, heads + 1))
    axes.set_yticks(range(layers), range(1, layers + 1))
    axes.tick_params(length=0)
    for layer, head in np.ndindex(values.shape):
        value = values[layer, head]
        share = (value - least) / (most - least) if most > least else 0.0
        colour = ink_on(theme, share)
        text = f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
        axes.text(head, layer, text, ha="center", va="center", color=colour, fontsize=SMALL - 1)
