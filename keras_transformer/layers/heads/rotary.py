"""Positions as rotations of queries and keys, in the place of section 3.5's encodings (Vaswani et
al. 2017).
"""

import keras
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
        sines = turns[:, 0::2]
        cosines = turns[:, 1::2]
        pairs = ops.cast(x, "float32")
        even = pairs[..., 0::2]
        odd = pairs[..., 1::2]
        turned = ops.stack([even * cosines - odd * sines, odd * cosines + even * sines], axis=-1)
        return ops.cast(ops.reshape(turned, ops.shape(x)), x.dtype)
