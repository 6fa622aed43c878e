"""A `VisionTransformer` as one TensorFlow graph (Dosovitskiy et al. 2021, "An Image is Worth 16x16
Words: Transformers for Image Recognition at Scale"): pictures in; classes or attention out. Shapes:
B pictures of H x W pixels with C channels; K classes; N layers of h heads; patches of P x P pixels.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.inference.model_graphs import traced
from keras_transformer.inference.picture_classifier import WHITE
from keras_transformer.models import VisionHyperparameters, VisionTransformer
from keras_transformer.saved_models.served_module import ServedModule
from pipelines.batches import picture_files

# Any size, so that the module itself can refuse a wrong one in plain words.
PICTURE = tf.TensorSpec([None, None, None, None], tf.float32, name="picture")
PNG = tf.TensorSpec([None], tf.string, name="png")


class PictureModule(ServedModule):
    """A classifier of pictures:

    serving_default, classify  picture (B, H, W, C), from 0 to 1 -> class (B,), classes and
                               probabilities (B, K)
    classify_png               png (B,), files -> the same
    attend                     picture -> attention (B, N, h, H / P, W / P)
    attend_png                 png -> attention, and the pictures seen (B, H, W, C)
    """

    does = "pictures in, classes out"

    def __init__(self, model: VisionTransformer, classes: Sequence[str]):
        super().__init__(name="picture_classifier")
        hp = model.hyperparameters
        if len(classes) != hp.classes:
            raise ValueError(
                f"`classes` must be {hp.classes} names, as many as the model has classes. "
                f"Received: {len(classes)}."
            )
        self.classes = list(classes)
        self._keep(model)
        self.size = (hp.height, hp.width, hp.channels)
        self._grid = hp.grid
        fitting = tf.TensorSpec([None, *self.size], tf.float32)
        self._logits = traced(lambda pictures: model(pictures, training=False), fitting)
        self._weights = traced(
            lambda pictures: model.attention_weights(pictures)["encoder"], fitting
        )
        self.classify = traced(self._classify, PICTURE)
        self.classify_png = traced(lambda png: self.classify(self._decoded(png)), PNG)
        self.attend = traced(self._attend, PICTURE)
        self.attend_png = traced(self._attend_png, PNG)

    def functions(self):
        return {
            "serving_default": self.classify,
            "classify": self.classify,
            "classify_png": self.classify_png,
            "attend": self.attend,
            "attend_png": self.attend_png,
        }

    def golden_inputs(self, examples):
        """Return pictures of the test set, given as lists of bytes, and a black and a white one."""
        pictures = [*examples, np.zeros(self.size), np.full(self.size, WHITE)]
        return [_example(np.asarray(pixels, np.uint8)) for pixels in pictures]

    def facts(self):
        return {"classes": {"names": self.classes}}

    def title(self, card):
        return f"A classifier of pictures, {card.get('pictures', {}).get('name', 'unknown')}"

    def rows(self, card):
        height, width, channels = self.size
        scores = card.get("scores", {})
        return {
            "pictures": f"{height} x {width} pixels, "
            f"{channels} {'channel' if channels == 1 else 'channels'}, values from 0 to 1",
            "classes": ", ".join(self.classes),
            "test set": f"accuracy {scores['accuracy']}" if scores else "unknown",
        }

    @classmethod
    def build(cls, description: Mapping[str, Any], dtype) -> VisionTransformer:
        sizes = VisionHyperparameters.of_description(description["hyperparameters"])
        return VisionTransformer(sizes, dtype=dtype)

    @classmethod
    def of_model(cls, model, folder, values):
        return cls(model, folder.read_description()["classes"]["names"])

    def _classify(self, picture):
        """Return the likeliest class (B,) of pictures (B, H, W, C), from 0 to 1, and all classes
        with their probabilities, (B, K) each, in the same order for all pictures.
        """
        probabilities = tf.nn.softmax(self._logits(self._fitting(picture)))
        classes = tf.constant(self.classes)
        return {
            "class": tf.gather(classes, tf.argmax(probabilities, axis=-1)),
            "classes": tf.broadcast_to(classes, tf.shape(probabilities)),
            "probabilities": probabilities,
        }

    def _attend(self, picture):
        """Return the attention of the class token to each patch, (B, N, h, H / P, W / P). The rest
        to 1 is its attention to itself.
        """
        weights = self._weights(self._fitting(picture))[:, :, :, 0, 1:]
        shape = tf.shape(weights)[:3]
        return {"attention": tf.reshape(weights, tf.concat([shape, self._grid], axis=0))}

    def _attend_png(self, png):
        """Return the outputs of `attend` for PNG or JPEG files (B,), and the pictures in them."""
        pictures = self._decoded(png)
        return {"seen": tf.ensure_shape(pictures, [None, *self.size]), **self.attend(pictures)}

    def _decoded(self, png):
        def decoded(contents):
            shape = tf.concat([picture_files.size_of(contents), self.size[-1:]], axis=0)
            with tf.control_dependencies([self._size_check(shape)]):
                pixels = picture_files.decoded(tf.identity(contents), self.size[-1])
            return tf.ensure_shape(pixels, self.size)

        pixels = tf.map_fn(decoded, png, fn_output_signature=tf.TensorSpec(self.size, tf.uint8))
        return tf.cast(pixels, tf.float32) / WHITE

    def _fitting(self, picture):
        """Return the pictures after checks of their size and values."""
        is_valid = tf.reduce_all((picture >= 0) & (picture <= 1))
        value_check = tf.debugging.Assert(
            is_valid, ["the values of a picture must be from 0 to 1. Divide bytes by 255."]
        )
        with tf.control_dependencies([self._size_check(tf.shape(picture)[1:]), value_check]):
            return tf.ensure_shape(tf.identity(picture), [None, *self.size])

    def _size_check(self, shape):
        """Assert that a picture's shape, (H, W, C), is that of the model."""
        height, width, channels = self.size
        message = f"a picture must be {height} x {width} x {channels} (height, width, channels)."
        return tf.debugging.Assert(
            tf.reduce_all(shape == self.size), [f"{message} Resize it. Received:", shape]
        )


def _example(pixels):
    png = tf.io.encode_png(pixels).numpy()
    return {
        "picture": pixels.astype(np.float32) / np.float32(WHITE),
        "png": np.array(png, dtype=object),
    }
