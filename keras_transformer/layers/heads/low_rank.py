"""Attention to K projected keys, in the place of section 3.2.3's to all (Vaswani et al. 2017)."""

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.heads.softmax import AttentionHeads, mask_of_keys
from keras_transformer.layers.scaled_dot_product import scaled_dot_product_attention
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class LowRankHeads(AttentionHeads):
    """Linformer's attention: n keys and values are mixed to K by two learned matrices.

        softmax(Q (E K)^T / sqrt(d_k)) (F V),    E, F: (K, n)

    It replaces the encoder's self-attention. A decoder cannot have it, because each projected key
    holds later positions. All heads of a layer share E and F. A sentence uses their first columns;
    positions beyond `max_positions` use the last. Padding is taken as 0.

    Args:
        rank: K, at least 1.
        max_positions: columns of E and F.
        dropout: probability in [0, 1) on the attention weights.

    Call arguments: as in `AttentionHeads`, with an `attention_mask` of (B, 1, S) and without
        `causal`.

    Reference: Wang et al. 2020, "Linformer: Self-Attention with Linear Complexity", eq. 7.
    """

    def __init__(self, rank: int, max_positions: int = 1024, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.rank = rank
        self.max_positions = max_positions
        self.dropout = dropout
        self.weights_dropout = Dropout(dropout, dtype=self.dtype_policy, name="weights_dropout")

    def build(self, query_shape, key_shape, value_shape):
        super().build(query_shape, key_shape, value_shape)

        def projection(name):
            # "each entry with variance 1 / K" (theorem 2).
            return self.add_weight(
                name=name,
                shape=(self.max_positions, self.rank),
                initializer=keras.initializers.RandomNormal(stddev=self.rank**-0.5),
            )

        self.key_projection = projection("key_projection")
        self.value_projection = projection("value_projection")

    def with_weights(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """`call`, and second by how much each value counts for each query, (B, h, T, S).

        These weights come from F; rows do not sum to 1, and they may be negative.
        """
        heads, weights, columns = self._attend(query, key, value, attention_mask, causal)
        return heads, ops.matmul(weights, ops.swapaxes(columns, -1, -2))

    def call(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> Tensor:
        heads, _, _ = self._attend(query, key, value, attention_mask, causal)
        return heads

    def _attend(self, query, key, value, attention_mask, causal):
        """The heads, the weights of the K projected keys, (B, h, T, K), and the values' F^T without
        padding, broadcastable to (B, h, S, K).
        """
        if causal is not None:
            raise ValueError(
                "`causal` must be None, because each projected key holds all positions. "
                "Received: a mask. Give the decoder SoftmaxHeads()."
            )
        places = ops.minimum(ops.arange(ops.shape(key)[2]), self.max_positions - 1)
        mask = mask_of_keys(attention_mask)
        real = None if mask is None else ops.cast(mask, query.dtype)[:, :, :, None]

        def columns_of(projection):
            columns = ops.cast(ops.take(projection, places, axis=0), query.dtype)[None, None]
            return columns if real is None else columns * real

        keys = ops.matmul(ops.swapaxes(columns_of(self.key_projection), -1, -2), key)
        columns = columns_of(self.value_projection)
        values = ops.matmul(ops.swapaxes(columns, -1, -2), value)
        heads, weights = scaled_dot_product_attention(
            query, keys, values, dropout=self.weights_dropout
        )
        return heads, weights, columns

    def get_config(self):
        return {
            **super().get_config(),
            "rank": self.rank,
            "max_positions": self.max_positions,
            "dropout": self.dropout,
        }
