"""Positions that self-attention itself knows, in place of section 3.5's encodings (Vaswani et al.
2017): its result depends on the distance between a query and a key.
"""

import math
from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.embedding import sines_and_cosines
from keras_transformer.layers.prototypes import check_even, check_sizes
from keras_transformer.layers.scaled_dot_product import RelativePositions
from keras_transformer.layers.tensors import Tensor, distances


@keras.saving.register_keras_serializable("keras_transformer")
class RelativeBias(RelativePositions):
    """T5's positions: each head adds a learned number to the score, by the bucket of the distance.

        score(t, s) + b[bucket(s - t), head]

    Half of a direction's buckets hold one distance each. The others divide the distance's logarithm
    evenly, up to `max_distance`; larger distances share the last. With `bidirectional`, half of the
    buckets are for the keys after the query. Without it, those keys share bucket 0.

    Each layer has its own table, whereas all layers of a stack share one in T5.

    Args:
        bidirectional: whether keys after the query are attended to: True in an encoder.
        num_buckets: buckets of both directions together; T5's 32.
        max_distance: distance in tokens from which on all share a bucket; T5's 128.

    Reference: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified
        Text-to-Text Transformer", section 2.1.
    """

    def __init__(
        self, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128, **kwargs
    ):
        super().__init__(**kwargs)
        check_sizes(4 if bidirectional else 2, num_buckets=num_buckets)
        check_sizes(max_distance=max_distance)
        self.bidirectional = bidirectional
        self.num_buckets = num_buckets
        self.max_distance = max_distance

    def build(self, query_shape, value_shape):
        heads = query_shape[1]
        # T5's initializer, if h d_k = d_model.
        stddev = (heads * query_shape[-1]) ** -0.5
        self.bias = self.add_weight(
            name="bias",
            shape=(heads, self.num_buckets),
            initializer=keras.initializers.RandomNormal(stddev=stddev),
            autocast=False,
        )

    def score_bias(self, query: Tensor, key: Tensor, between: Callable = distances) -> Tensor:
        buckets = self.buckets(between(ops.shape(query)[-2], ops.shape(key)[-2]))
        return ops.cast(ops.take(self.bias, buckets, axis=1), "float32")

    def buckets(self, distance: Tensor) -> Tensor:
        """Return the bucket of each distance, integers of any shape."""
        one_direction = self.num_buckets // 2 if self.bidirectional else self.num_buckets
        distance = ops.cast(distance, "int32")
        start = ops.where(distance > 0, one_direction, 0) if self.bidirectional else 0
        far = ops.abs(distance) if self.bidirectional else ops.maximum(-distance, 0)
        exact = one_direction // 2
        # The smallest distance of each bucket but the first after the exact ones, as an integer.
        growth = self.max_distance / exact
        steps = one_direction - exact
        firsts = [math.ceil(exact * growth ** (step / steps) - 1e-9) for step in range(1, steps)]
        # Compare and count rather than search: every runtime has these operations.
        reached = far[..., None] >= ops.convert_to_tensor(firsts, "int32")
        logarithmic = exact + ops.sum(ops.cast(reached, "int32"), axis=-1)
        return start + ops.where(far < exact, far, logarithmic)


@keras.saving.register_keras_serializable("keras_transformer")
class LinearBias(RelativePositions):
    """ALiBi: each head subtracts a multiple of the distance from the score.

        score(t, s) - m_i |s - t|,    m_i = 2^(-8 i / h),    i = 1 ... h

    It has no weights. The authors have a decoder only; in an encoder, the bias is the same both
    ways. If h is no power of 2, the authors take every other m of the next power, not this formula.

    Reference: Press et al. 2022, "Train Short, Test Long: Attention with Linear Biases Enables
        Input Length Extrapolation", section 3.
    """

    def score_bias(self, query: Tensor, key: Tensor, between: Callable = distances) -> Tensor:
        distance = between(ops.shape(query)[-2], ops.shape(key)[-2])
        heads = query.shape[1]
        slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
        return -ops.cast(ops.abs(distance), "float32") * slopes.astype("float32")[:, None, None]


@keras.saving.register_keras_serializable("keras_transformer")
class RelativeKeysAndValues(RelativePositions):
    """A learned vector for each distance is added to the key, and another one to the value.

        score(t, s) = q_t (k_s + a^K_c)^T / sqrt(d_k)
        head_t      = sum_s weight(t, s) (v_s + a^V_c),    c = min(max(s - t, -clip), clip)

    All heads of a layer share the two tables.

    Args:
        clip: distance in tokens from which on all share a vector; the authors use 16 for base.

    Reference: Shaw et al. 2018, "Self-Attention with Relative Position Representations", eq. 3 to
        5.
    """

    def __init__(self, clip: int = 16, **kwargs):
        super().__init__(**kwargs)
        check_sizes(0, clip=clip)
        self.clip = clip

    def build(self, query_shape, value_shape):
        rows = 2 * self.clip + 1
        self.keys = self.add_weight(name="keys", shape=(rows, query_shape[-1]))
        self.values = self.add_weight(name="values", shape=(rows, value_shape[-1]))

    def score_bias(self, query: Tensor, key: Tensor, between: Callable = distances) -> Tensor:
        keys = ops.cast(self.keys, query.dtype)
        products = ops.cast(ops.matmul(query, ops.transpose(keys)), "float32")
        one_hot = self._one_hot(between(ops.shape(query)[-2], ops.shape(key)[-2]), "float32")
        # (B, h, T, rows) by (T, S, rows).
        scores = ops.einsum("bhtr,tsr->bhts", products, one_hot)
        return scores * query.shape[-1] ** -0.5

    def of_weights(self, weights: Tensor, between: Callable = distances) -> Tensor:
        one_hot = self._one_hot(between(*ops.shape(weights)[-2:]), weights.dtype)
        row_weights = ops.einsum("bhts,tsr->bhtr", weights, one_hot)
        return ops.matmul(row_weights, ops.cast(self.values, weights.dtype))

    def _one_hot(self, distance, dtype):
        """Return the row of the tables for each pair of positions, one-hot: (T, S, rows)."""
        distance = ops.clip(distance, -self.clip, self.clip)
        return ops.one_hot(distance + self.clip, 2 * self.clip + 1, dtype=dtype)


@keras.saving.register_keras_serializable("keras_transformer")
class Rotary(RelativePositions):
    """Rotary position embedding: components 2i and 2i + 1 of a query or key at position m are
    rotated by the angle m / 10000^(2i / d_k).

        q_m k_n^T then depends on the positions only through n - m.

    It has no weights. d_k must be even.

    Reference: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", eq.
        34.
    """

    def build(self, query_shape, value_shape):
        check_even("d_k", query_shape[-1], "rotary positions rotate pairs")

    def placed(self, x: Tensor, after: Tensor | None = None) -> Tensor:
        positions = ops.arange(ops.shape(x)[-2])
        if after is not None:
            positions = positions + ops.shape(after)[-2]
        width = x.shape[-1]
        exponents = np.repeat(np.arange(0, width, 2) / width, 2)
        # float32 (T, d_k).
        sines, cosines = sines_and_cosines(positions, exponents)
        pairs = ops.cast(x, "float32")
        # A product with a matrix of 0, 1 and -1 is exact, and faster than slices of step 2.
        rotated = pairs * cosines + ops.matmul(pairs, _quarter_turn(width)) * sines
        return ops.cast(rotated, x.dtype)


def _quarter_turn(width):
    """Return the matrix that maps each pair (a, b) of a row to (-b, a), float32 (width, width)."""
    matrix = np.zeros((width, width), "float32")
    even = np.arange(0, width, 2)
    matrix[even + 1, even] = -1
    matrix[even, even + 1] = 1
    return matrix
