"""Positions as rotations of queries and keys, in the place of section 3.5's encodings (Vaswani et
al. 2017).
"""

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.heads.relative_positions import NoRelativePositions
from keras_transformer.layers.positions import sinusoidal_positions
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class Rotary(NoRelativePositions):
    """Rotary position embedding: components 2i and 2i + 1 of a query or key at position m are
    turned by the angle m / 10000^(2i / d_k).

        q_m k_n^T then depends on the two positions by n - m alone.

    It has no weights. d_k must be even.

    Reference: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", eq.
        34.
    """

    def build(self, query_shape, value_shape):
        if query_shape[-1] % 2:
            raise ValueError(
                "`d_k` must be even, because rotary positions turn pairs. Received: "
                f"d_k={query_shape[-1]}. Try {query_shape[-1] + 1}."
            )

    def placed(self, x: Tensor, after: Tensor | None = None) -> Tensor:
        positions = ops.arange(ops.shape(x)[-2])
        if after is not None:
            positions = positions + ops.shape(after)[-2]
        width = x.shape[-1]
        # Sines in the even columns and cosines in the odd ones, float32 (T, d_k).
        turns = sinusoidal_positions(positions, width)
        sines = ops.repeat(turns[:, 0::2], 2, axis=-1)
        cosines = ops.repeat(turns[:, 1::2], 2, axis=-1)
        pairs = ops.cast(x, "float32")
        # A product with numbers 0, 1 and -1 is exact, and faster than picking every other column.
        turned = pairs * cosines + ops.matmul(pairs, _quarter_turn(width)) * sines
        return ops.cast(turned, x.dtype)


def _quarter_turn(width):
    """The matrix that makes each pair (a, b) of a row (-b, a), float32 (width, width)."""
    matrix = np.zeros((width, width), "float32")
    even = np.arange(0, width, 2)
    matrix[even + 1, even] = -1
    matrix[even, even + 1] = 1
    return matrix
