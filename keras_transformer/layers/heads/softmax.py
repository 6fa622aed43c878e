"""Attention by a softmax over the keys (Vaswani et al. 2017, section 3.2.1)."""

import functools

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.heads.attention_heads import AttentionHeads
from keras_transformer.layers.heads.relative_positions import NoRelativePositions
from keras_transformer.layers.heads.similarities import ScaledDotProduct, Similarity
from keras_transformer.layers.prototypes import described, like
from keras_transformer.layers.scaled_dot_product import (
    softmax_of_allowed,
    unless_nothing_is_allowed,
)
from keras_transformer.layers.tensors import KeysAndValues, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class SoftmaxHeads(AttentionHeads):
    """softmax(similarity(Q, K)) V; by default the paper's attention, eq. 1, which replaces none.

    Args:
        similarity: how a query is compared with a key: a `Similarity`, `ScaledDotProduct()` by
            default.
        positions: what the distance between query and key adds: `NoRelativePositions()` by
            default. Others suit self-attention only.
        dropout: probability in [0, 1) on the attention weights; the paper has none there.

    Call arguments and result as in `AttentionHeads`.
    """

    def __init__(
        self,
        similarity: Similarity | None = None,
        positions: NoRelativePositions | None = None,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.similarity = like(similarity or ScaledDotProduct(), policy, "similarity")
        self.positions = like(positions or NoRelativePositions(), policy, "positions")
        self.dropout = dropout
        self.weights_dropout = Dropout(dropout, dtype=policy, name="weights_dropout")

    def build(self, query_shape, key_shape, value_shape):
        super().build(query_shape, key_shape, value_shape)
        self.similarity.build(query_shape)
        self.positions.build(query_shape, value_shape)

    def pattern(self, query: Tensor, key: Tensor) -> Tensor | None:
        """Which distances may be attended to, booleans (1, T, S); None: all.

        The newest query stands beside the newest key.
        """
        return None

    def with_weights(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        query = self.positions.placed(query)
        key = self.positions.placed(key)
        mask = joined(attention_mask, causal, self.pattern(query, key))
        return self.attend(query, key, value, mask)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        following: int | Tensor = 0,
    ) -> tuple[Tensor, Tensor]:
        """The attention itself, of queries and keys that were `placed`.

        Args:
            query, key, value: as in `call`.
            mask: booleans broadcastable to (B, h, T, S).
            following: how many keys come after the one that the last query stands beside.

        Returns:
            Heads (B, h, T, d_v), and the weights (B, h, T, S).
        """
        scores = self.positions.added(self.similarity.scores(query, key), query, following)
        weights = ops.cast(softmax_of_allowed(scores, mask), query.dtype)
        weights = self.weights_dropout(weights)
        heads = self.positions.mixed(weights, value, following)
        return tuple(unless_nothing_is_allowed(found, mask) for found in (heads, weights))

    def stepper(self) -> "SoftmaxStepper":
        """Self-attention over a cache."""
        return SoftmaxStepper(self)

    def get_config(self):
        return {
            **super().get_config(),
            "similarity": described(self.similarity),
            "positions": described(self.positions),
            "dropout": self.dropout,
        }


class SoftmaxStepper:
    """Attention of each row's newest position to itself and all positions before it.

    The state is the cache of keys and values, (rows, h, t, d_k) and (rows, h, t, d_v). It grows by
    one along axis 2 at every step.

    Args:
        heads: built `SoftmaxHeads`.

    Call arguments:
        query, key, value: of the newest position, (rows, h, 1, d_k) or (rows, h, 1, d_v).
        state: what `start` or the step before returned.

    Returns:
        (rows, h, 1, d_v), and the state with the new position appended.
    """

    growing = (2, 2)

    def __init__(self, heads: SoftmaxHeads):
        self._heads = heads

    def start(self, rows: int | Tensor) -> KeysAndValues:
        """The empty cache before the first position."""
        count, *widths = self._heads.sizes
        keys, values = (
            ops.zeros((rows, count, 0, width), dtype=self._heads.compute_dtype) for width in widths
        )
        return keys, values

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, state: KeysAndValues
    ) -> tuple[Tensor, KeysAndValues]:
        placed = self._heads.positions.placed
        before, values_before = state
        keys = ops.concatenate([before, placed(key, after=before)], axis=2)
        values = ops.concatenate([values_before, value], axis=2)
        query = placed(query, after=before)
        mask = joined(self._heads.pattern(query, keys))
        heads, _ = self._heads.attend(query, keys, values, mask)
        return heads, (keys, values)


def joined(*masks: Tensor | None) -> Tensor | None:
    """All masks by `&`, for scores of h heads.

    Args:
        masks: booleans broadcastable to (B, T, S), or None where all may be attended to.

    Returns:
        Booleans broadcastable to (B, h, T, S), or None.
    """
    given = [mask for mask in masks if mask is not None]
    return ops.expand_dims(functools.reduce(ops.logical_and, given), -3) if given else None
