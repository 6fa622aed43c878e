"""A picture as a sequence for the encoder of section 3.1 (Vaswani et al. 2017): squares of pixels
in place of words.
"""

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class PatchEmbedding(keras.layers.Layer):
    """Cut pictures into squares of P x P pixels, map each to a vector, put the class token before
    them, and add learned positions.

        Dropout([c; x_1 W + b; ...; x_n W + b] + E),    W: (P P C, d_model), E: (1 + n, d_model)

    Positions start with a standard deviation of d_model^-0.5, as in `LearnedEncoding`. Small ones,
    such as the 0.02 of the Vision Transformer's own program, are drowned by the patches: a short
    training then spends more of its time on a bag of patches.

    Patches are in the order of reading, from left to right and from top to bottom, and the numbers
    of a patch are in the order of row, column, channel.

    Args:
        patch_size: P, pixels.
        d_model: width of the vectors.
        dropout: probability in [0, 1).

    Call arguments:
        pictures: (B, H, W, C), H and W multiples of P that are known when it is built.

    Returns:
        (B, 1 + n, d_model), n = (H / P)(W / P). The class token is the first.

    Raises:
        ValueError: if P does not divide H and W.

    Example:
        x = PatchEmbedding(patch_size=4, d_model=64)(pictures)

    Reference: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words: Transformers for Image
        Recognition at Scale", section 3.1, eq. 1.
    """

    def __init__(self, patch_size: int, d_model: int, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.patch_size = patch_size
        self.d_model = d_model
        self.dropout = dropout
        self.sum_dropout = Dropout(dropout, dtype=self.dtype_policy, name="sum_dropout")

    def build(self, pictures_shape):
        _, height, width, channels = pictures_shape
        rows, columns = grid(height, width, self.patch_size)
        self.kernel = self.add_weight(
            name="kernel",
            shape=(self.patch_size**2 * channels, self.d_model),
            initializer="glorot_uniform",
        )
        self.bias = self.add_weight(name="bias", shape=(self.d_model,), initializer="zeros")
        self.class_token = self.add_weight(
            name="class_token", shape=(self.d_model,), initializer="zeros"
        )
        self.positions = self.add_weight(
            name="positions",
            shape=(1 + rows * columns, self.d_model),
            initializer=keras.initializers.RandomNormal(stddev=self.d_model**-0.5),
        )

    def call(self, pictures: Tensor) -> Tensor:
        x = ops.matmul(patches(pictures, self.patch_size), self.kernel) + self.bias
        first = ops.broadcast_to(self.class_token, (ops.shape(x)[0], 1, self.d_model))
        x = ops.concatenate([ops.cast(first, x.dtype), x], axis=1)
        return self.sum_dropout(x + ops.cast(self.positions, x.dtype))

    def compute_output_shape(self, pictures_shape):
        rows, columns = grid(*pictures_shape[1:3], self.patch_size)
        return (pictures_shape[0], 1 + rows * columns, self.d_model)

    def get_config(self):
        return {
            **super().get_config(),
            "patch_size": self.patch_size,
            "d_model": self.d_model,
            "dropout": self.dropout,
        }


def patches(pictures: Tensor, patch_size: int) -> Tensor:
    """Pictures (B, H, W, C) to their patches, (B, n, P P C)."""
    _, height, width, channels = pictures.shape
    rows, columns = grid(height, width, patch_size)
    shape = (-1, rows, patch_size, columns, patch_size, channels)
    cut = ops.transpose(ops.reshape(pictures, shape), (0, 1, 3, 2, 4, 5))
    return ops.reshape(cut, (-1, rows * columns, patch_size**2 * channels))


def grid(height: int, width: int, patch_size: int) -> tuple[int, int]:
    """How many rows and columns of patches a picture has.

    Raises:
        ValueError: if patches do not fill it.
    """
    if height % patch_size or width % patch_size:
        fitting = [size for size in range(2, 33) if not height % size and not width % size]
        remedy = f"Try {' or '.join(map(str, fitting))}" if fitting else "Resize the pictures"
        raise ValueError(
            f"`patch_size` must divide height and width of the pictures. Received: "
            f"patch_size={patch_size}, height={height}, width={width}. {remedy}."
        )
    return height // patch_size, width // patch_size
