"""Pictures that are moved by a few pixels each time that they are trained on (as LeCun et al. 1998,
"Gradient-Based Learning Applied to Document Recognition", section III, distort theirs).

It is arithmetic on tensors, and so part of a tf.data graph. Random numbers follow from a key by
counting: an interrupted run draws the same again.
"""

import tensorflow as tf

from pipelines.batches.examples import KEYS, Examples
from pipelines.random_numbers import GOLDEN, mix

WHITE = 255.0


def shifted(pictures: tf.Tensor, most: int, keys: tf.Tensor) -> tf.Tensor:
    """Move each picture (B, H, W, C) by up to `most` pixels down or up, and right or left, by its
    random key, uint64 (B,). Pixels from outside are 0, black. All of the (2 most + 1)^2 shifts are
    equally likely.
    """
    draws = mix(keys + GOLDEN)
    down = tf.math.floormod(draws, 2 * most + 1)
    right = tf.math.floormod(mix(draws + GOLDEN), 2 * most + 1)
    # The rows and columns that are seen of the picture in a frame of zeros.
    size = tf.shape(pictures)
    framed = tf.pad(pictures, [[0, 0], [most, most], [most, most], [0, 0]])
    rows = tf.cast(down, tf.int32)[:, None] + tf.range(size[1])
    columns = tf.cast(right, tf.int32)[:, None] + tf.range(size[2])
    framed = tf.gather(framed, rows, axis=1, batch_dims=1)
    return tf.ensure_shape(tf.gather(framed, columns, axis=2, batch_dims=1), pictures.shape)


def examples(split, positions: int, most: int = 0, seed: int = 0) -> Examples:
    """Return pictures as `Examples` of classification, `(pictures, classes, weights)`: pictures
    from 0 to 1, float32 (B, H, W, C), each of which counts as `positions` of `batch_tokens`. Each
    is moved by at most `most` pixels, differently each time that it is trained on, and always the
    same way in evaluation.
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
