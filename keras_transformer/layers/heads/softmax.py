"""The attention inside `MultiHeadAttention`, between its projections (Vaswani et al. 2017, section
3.2.2): the interface, and the attentions by a softmax over the keys (section 3.2.1).
"""

import functools

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.heads.relative_positions import RelativePositions
from keras_transformer.layers.prototypes import Part, described, like
from keras_transformer.layers.scaled_dot_product import ScaledDotProduct, Similarity
from keras_transformer.layers.tensors import KeysAndValues, Tensor


class AttentionHeads(Part):
    """Attention of h heads, from projected queries, keys and values to the outputs of the heads.

    `MultiHeadAttention` takes one and makes its own copy. A subclass defines `with_weights`. It
    also defines `call` if whole sequences are computed faster without the weights, and `stepper` if
    a decoder can use it.

    Call arguments:
        query: (B, h, T, d_k).
        key: (B, h, S, d_k).
        value: (B, h, S, d_v).
        attention_mask: booleans broadcastable to (B, T, S), True where the query may attend.
        causal: `causal_mask(T)` where no query may attend to a later key (then S = T), or None.
            It is joined with `attention_mask`.

    Returns:
        (B, h, T, d_v).
    """

    def build(self, query_shape, key_shape, value_shape):
        # h, d_k and d_v, which a stepper's first state is made of.
        self.sizes = (query_shape[1], query_shape[-1], value_shape[-1])

    def call(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> Tensor:
        heads, _ = self.with_weights(query, key, value, attention_mask, causal)
        return heads

    def with_weights(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """`call`, and second how much each query attends to each key, (B, h, T, S)."""
        raise NotImplementedError

    def stepper(self):
        """Attention of each row's newest position to itself and all before it, with the current
        weights. See `SoftmaxStepper` for its methods.
        """
        raise NotImplementedError

    def memory(self, key: Tensor, value: Tensor) -> KeysAndValues:
        """What is kept of a memory's keys and values for `look`, tensors of B rows."""
        return key, value

    def look(
        self, query: Tensor, memory: KeysAndValues, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Attend to a memory with the newest position of K hypotheses a sentence: (B, h, K, d_k),
        what `memory` returned, and booleans (B, 1, S) -> (B, h, K, d_v), and weights (B, h, K, S).
        """
        return self.with_weights(query, *memory, memory_mask)

    def compute_output_shape(self, query_shape, key_shape, value_shape):
        return (*query_shape[:-1], value_shape[-1])


@keras.saving.register_keras_serializable("keras_transformer")
class SoftmaxHeads(AttentionHeads):
    """softmax(similarity(Q, K)) V. By default this is the paper's attention, eq. 1.

    Args:
        similarity: how a query is compared with a key: a `Similarity`, `ScaledDotProduct()` by
            default.
        positions: what the distance between query and key changes: a `RelativePositions`, by
            default one that changes nothing. Others suit self-attention only.
        dropout: probability in [0, 1) on the attention weights; the paper has none there.

    Call arguments and result as in `AttentionHeads`.
    """

    def __init__(
        self,
        similarity: Similarity | None = None,
        positions: RelativePositions | None = None,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.similarity = like(similarity or ScaledDotProduct(), policy, "similarity")
        self.positions = like(positions or RelativePositions(), policy, "positions")
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
        bias = self.positions.score_bias(query, key, following)
        heads, weights = self.similarity.attend(query, key, value, mask, bias, self.weights_dropout)
        of_distances = self.positions.of_weights(weights, following)
        return heads if of_distances is None else heads + of_distances, weights

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


def mask_of_keys(attention_mask: Tensor | None) -> Tensor | None:
    """A mask (B, 1, S) that is the same for all queries, as it is.

    Raises:
        ValueError: if it has a row for each query.
    """
    if attention_mask is not None and attention_mask.shape[-2] != 1:
        raise ValueError(
            "This attention can mask keys only, not single pairs: pass attention_mask of shape "
            f"(B, 1, S). Received: shape {tuple(attention_mask.shape)}. Pass what is padding as "
            "attention_mask=padding_mask(ids), and causal=causal_mask(T) beside it."
        )
    return attention_mask
