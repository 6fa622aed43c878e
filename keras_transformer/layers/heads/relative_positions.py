"""Positions that self-attention itself knows, in the place of section 3.5's encodings (Vaswani et
al. 2017): what the distance between a query and a key changes.
"""

import keras
from keras import ops

from keras_transformer.layers.prototypes import Part
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class NoRelativePositions(Part):
    """The paper's: attention sees no positions but those in its input. Subclasses override."""

    def build(self, query_shape, value_shape):
        """Make the weights for queries (B, h, T, d_k) and values (B, h, S, d_v)."""

    def placed(self, x: Tensor, after: Tensor | None = None) -> Tensor:
        """Queries or keys that know where they stand.

        Args:
            x: (B, h, T, d_k).
            after: the keys before them, (B, h, t, d_k); None: they are the first.
        """
        return x

    def added(self, scores: Tensor, query: Tensor, following: int | Tensor = 0) -> Tensor:
        """The scores with what distances add to them.

        Args:
            scores: float32, (B, h, T, S).
            query: (B, h, T, d_k).
            following: how many keys come after the one that the last query stands beside.
        """
        return scores

    def mixed(self, weights: Tensor, value: Tensor, following: int | Tensor = 0) -> Tensor:
        """The values (B, h, S, d_v), mixed by the weights (B, h, T, S)."""
        return ops.matmul(weights, value)


def distances(
    num_queries: int | Tensor, num_keys: int | Tensor, following: int | Tensor = 0
) -> Tensor:
    """How far each key comes after each query; negative where it stands before it.

    Args:
        num_queries: T.
        num_keys: S.
        following: how many keys come after the one that the last query stands beside.

    Returns:
        Integers, (T, S).
    """
    first = num_keys - num_queries - following
    return ops.arange(num_keys)[None, :] - (ops.arange(num_queries) + first)[:, None]
