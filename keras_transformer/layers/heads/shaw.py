"""Vectors for distances in keys and values, in the place of section 3.5's encodings (Vaswani et
al. 2017).
"""

import keras
from keras import ops

from keras_transformer.layers.heads.relative_positions import NoRelativePositions, distances
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class RelativeKeysAndValues(NoRelativePositions):
    """A learned vector for each distance is added to the key, and another one to the value.

        score(t, s) = q_t (k_s + a^K_c)^T / sqrt(d_k)
        head_t      = sum_s weight(t, s) (v_s + a^V_c),    c = min(max(s - t, -clip), clip)

    All heads of a layer share the two tables.

    Args:
        clip: distance in tokens from which on all are alike; the authors' 16 for base.

    Reference: Shaw et al. 2018, "Self-Attention with Relative Position Representations", eq. 3 to
        5.
    """

    def __init__(self, clip: int = 16, **kwargs):
        super().__init__(**kwargs)
        self.clip = clip

    def build(self, query_shape, value_shape):
        rows = 2 * self.clip + 1
        self.keys = self.add_weight(name="keys", shape=(rows, query_shape[-1]))
        self.values = self.add_weight(name="values", shape=(rows, value_shape[-1]))

    def added(self, scores: Tensor, query: Tensor, following: int | Tensor = 0) -> Tensor:
        keys = ops.cast(self.keys, query.dtype)
        of_distance = ops.cast(ops.matmul(query, ops.transpose(keys)), "float32")
        shape = ops.shape(scores)
        chosen = self._one_hot(shape, following, "float32")
        # (B, h, T, rows) by (T, S, rows).
        along = ops.einsum("bhtr,tsr->bhts", of_distance, chosen)
        return scores + along * query.shape[-1] ** -0.5

    def mixed(self, weights: Tensor, value: Tensor, following: int | Tensor = 0) -> Tensor:
        chosen = self._one_hot(ops.shape(weights), following, weights.dtype)
        of_distance = ops.einsum("bhts,tsr->bhtr", weights, chosen)
        values = ops.cast(self.values, weights.dtype)
        return ops.matmul(weights, value) + ops.matmul(of_distance, values)

    def _one_hot(self, shape, following, dtype):
        """Which row of the tables is for which pair of positions: (T, S, rows)."""
        distance = ops.clip(distances(shape[-2], shape[-1], following), -self.clip, self.clip)
        return ops.one_hot(distance + self.clip, 2 * self.clip + 1, dtype=dtype)

    def get_config(self):
        return {**super().get_config(), "clip": self.clip}
