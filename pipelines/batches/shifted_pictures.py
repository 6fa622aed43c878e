"""Pictures that are moved by a few pixels each time that they are trained on (as LeCun et al. 1998,
"Gradient-Based Learning Applied to Document Recognition", section III, distort theirs).

It is arithmetic on tensors, and so a part of a tf.data graph. What is drawn follows from a key by
counting: an interrupted run draws the same again.
"""

import tensorflow as tf

from pipelines.batches.examples import KEYS, Examples
from pipelines.random_numbers import GOLDEN, mix

WHITE = 255.0


def shifted(pictures: tf.Tensor, most: int, keys: tf.Tensor) -> tf.Tensor:
    """Move each picture (B, H, W, C) by up to `most` pixels down or up, and right or left, by its
    key, uint64 (B,); what comes in from outside is 0, black. Each of the (2 most + 1)^2 shifts is
    as likely.
    """
    draws = mix(keys + GOLDEN)
    down = tf.math.floormod(draws, 2 * most + 1)
    right = tf.math.floormod(mix(draws + GOLDEN), 2 * most + 1)
    # Rows and columns of the picture with a frame of zeros that are seen.
    size = tf.shape(pictures)
    framed = tf.pad(pictures, [[0, 0], [most, most], [most, most], [0, 0]])
    rows = tf.cast(down, tf.int32)[:, None] + tf.range(size[1])
    columns = tf.cast(right, tf.int32)[:, None] + tf.range(size[2])
    framed = tf.gather(framed, rows, axis=1, batch_dims=1)
    return tf.ensure_shape(tf.gather(framed, columns, axis=2, batch_dims=1), pictures.shape)


def examples(split, positions: int, most: int = 0, seed: int = 0) -> Examples:
    """Pictures as `Examples` of classification, `(pictures, classes, weights)`: pictures from 0 to
    1, float32 (B, H, W, C), each of which counts so many `positions` of `batch_tokens`. One is
    moved by at most `most` pixels, otherwise each time that it is trained on, and always alike
    where it is measured.
    """

    def to_batch(columns):
        pixels = columns["pixels"]
        if most:
            pixels = shifted(pixels, most, columns[KEYS])
        classes = columns["classes"]
        return tf.cast(pixels, tf.float32) / WHITE, classes, tf.ones(tf.shape(classes))

    columns = {"pixels": split.pixels, "classes": split.classes}
    draws = seed if most else None
    return Examples({}, columns, to_batch, positions=positions, draws=draws)
