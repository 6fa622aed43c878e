"""What is exported of a Vision Transformer: pictures in, classes and attention out."""

import numpy as np
import tensorflow as tf

from keras_transformer.inference.picture_module import WHITE, PictureModule
from keras_transformer.saved_models.artifact import Artifact


class PictureArtifact(Artifact):
    """A `PictureModule`:

    serving_default, classify  picture (B, H, W, C), from 0 to 1 -> class (B,), classes and
                               probabilities (B, K)
    classify_png               png (B,), files -> the same
    attend                     picture -> attention (B, N, h, H / P, W / P)
    attend_png                 png -> attention, and the pictures seen (B, H, W, C)
    """

    def __init__(self, module: PictureModule):
        super().__init__(module)
        self.what = f"{module.what} of keras_transformer: pictures in, classes out."

    @property
    def weights(self):
        return self.module.weights

    def signatures(self):
        module = self.module
        return {
            "serving_default": module.classify,
            "classify": module.classify,
            "classify_png": module.classify_png,
            "attend": module.attend,
            "attend_png": module.attend_png,
        }

    def golden_inputs(self, examples):
        """Pictures of the test set, which are lists of bytes; and a black and a white one."""
        size = self.module.size
        pictures = [*examples, np.zeros(size), np.full(size, WHITE)]
        return [_example(np.asarray(pixels, np.uint8)) for pixels in pictures]

    def facts(self):
        return {"classes": {"names": self.module.classes}}

    def title(self, card):
        return f"A classifier of pictures, {card.get('pictures', {}).get('name', 'unknown')}"

    def rows(self, card):
        height, width, channels = self.module.size
        scores = card.get("scores", {})
        return {
            "pictures": f"{height} x {width} pixels, "
            f"{channels} {'channel' if channels == 1 else 'channels'}, values from 0 to 1",
            "classes": ", ".join(self.module.classes),
            "test set": f"accuracy {scores['accuracy']}" if scores else "unknown",
        }


def _example(pixels):
    png = tf.io.encode_png(pixels).numpy()
    return {
        "picture": pixels.astype(np.float32) / np.float32(WHITE),
        "png": np.array(png, dtype=object),
    }
