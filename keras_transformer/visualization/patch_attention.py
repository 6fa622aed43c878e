"""What a Vision Transformer looks at, drawn on the picture (Dosovitskiy et al. 2021, figure 6): the
class token's attention to each patch.
"""

import numpy as np

from keras_transformer.visualization.theme import TEXT, Theme, new_figure

# Inches of a picture's longer side.
SIDE = 1.4
# Of the patch that is looked at most.
STRONGEST = 0.8


def draw(pixels: np.ndarray, weights: np.ndarray, title: str, theme: Theme):
    """The picture, and beside it the picture once more for each layer and head, under a colour
    that is the stronger the more the class token attends to a patch. Each map has its own scale.

    Args:
        pixels: uint8 (H, W, C).
        weights: shares of the patches, (N, h, rows, columns).
        title: what the model says of the picture.
        theme: colours.

    Returns:
        A matplotlib figure.
    """
    layers, heads = weights.shape[:2]
    height, width = np.array(pixels.shape[:2]) * SIDE / max(pixels.shape[:2])
    figure = new_figure((heads + 1) * (width + 0.15) + 0.5, layers * (height + 0.15) + 0.7)
    grid = figure.subplots(layers, heads + 1, squeeze=False)
    for (layer, column), axes in np.ndenumerate(grid):
        axes.set_xticks([])
        axes.set_yticks([])
        if layer and not column:
            axes.axis("off")
            continue
        _show(axes, pixels)
        if not column:
            axes.set_title("the picture")
            continue
        axes.imshow(overlay(weights[layer, column - 1], pixels.shape[:2], theme.series[1]))
        if not layer:
            axes.set_title(f"head {column}")
        if column == 1:
            axes.set_ylabel(f"layer {layer + 1}")
    figure.suptitle(title, fontsize=TEXT)
    return figure


def overlay(weights: np.ndarray, size: tuple[int, int], colour: str) -> np.ndarray:
    """One colour over a picture, as opaque as a patch is attended to.

    Args:
        weights: (rows, columns), at least 0.
        size: H and W of the picture, in pixels.
        colour: "#rrggbb".

    Returns:
        Red, green, blue and opacity from 0 to 1, (H, W, 4).
    """
    repeats = np.array(size) // weights.shape
    whole = np.kron(weights, np.ones(repeats))
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    opacity = STRONGEST * whole / max(weights.max(), np.finfo(np.float32).tiny)
    return np.stack([np.full(size, part) for part in (red, green, blue)] + [opacity], axis=-1)


def _show(axes, pixels):
    if pixels.shape[-1] == 1:
        axes.imshow(pixels[..., 0], cmap="gray", vmin=0, vmax=255)
    else:
        axes.imshow(pixels)
