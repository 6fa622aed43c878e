"""The class token's attention to each patch of a Vision Transformer, drawn on the picture
(Dosovitskiy et al. 2021, figure 6).
"""

import functools
from collections.abc import Mapping

import numpy as np

from keras_transformer.visualization.theme import TEXT, Theme, new_figure
from pipelines.options import Options, option

# Inches of a picture's longer side.
SIDE = 1.4
# Opacity over the patch with most attention.
STRONGEST = 0.8


class Patches(Options):
    """The patches that an image model attends to."""

    png: str | None = option(
        None,
        "PNG or JPEG file for patches. Default: the first picture of the model's test split.",
        path=True,
        only={"picture": ("patches",)},
    )

    def measure(self, model: str, search: Mapping):
        """Classify the picture and print the class that the model predicts."""
        from keras_transformer.inference.picture_classifier import PictureClassifier
        from keras_transformer.runs.model_path import description_of
        from pipelines.batches import picture_files
        from pipelines.corpora.images import load

        description = description_of(model)
        classifier = PictureClassifier.load(model)
        if self.png:
            pixels = picture_files.read(self.png, description["hyperparameters"]["channels"])
        elif "pictures" in description:
            pixels = load(**description["pictures"]).test.pixels[0]
        else:
            raise ValueError(
                f"{model} does not say what pictures it was trained on. Pass one by --png=FILE."
            )
        [name], probabilities = classifier.classify(pixels[None])
        title = f"{name}: {probabilities.max():.1%}"
        print(title)
        return functools.partial(draw, pixels, classifier.attention(pixels), title)


def draw(pixels: np.ndarray, weights: np.ndarray, title: str, theme: Theme):
    """Draw the picture, and beside it a copy for each layer and head under a colour that is more
    opaque where the class token attends more. Each map has its own scale.
    """
    layers, heads = weights.shape[:2]
    height, width = np.array(pixels.shape[:2]) * SIDE / max(pixels.shape[:2])
    figure = new_figure((heads + 1) * (width + 0.15) + 0.5, layers * (height + 0.15) + 0.7)
    grid = figure.subplots(layers, heads + 1, squeeze=False)
    grey = {"cmap": "gray", "vmin": 0, "vmax": 255} if pixels.shape[-1] == 1 else {}
    for (layer, column), axes in np.ndenumerate(grid):
        axes.set(xticks=[], yticks=[])
        if layer and not column:
            axes.axis("off")
            continue
        axes.imshow(pixels[..., 0] if grey else pixels, **grey)
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
    """Return red, green, blue and opacity in [0, 1] over a picture of `size` pixels, (H, W, 4): one
    colour "#rrggbb", whose opacity follows the weights (rows, columns) of the patches.
    """
    per_pixel = np.kron(weights, np.ones(np.array(size) // weights.shape))
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    opacity = STRONGEST * per_pixel / max(weights.max(), np.finfo(np.float32).tiny)
    return np.stack([np.full(size, part) for part in (red, green, blue)] + [opacity], axis=-1)
