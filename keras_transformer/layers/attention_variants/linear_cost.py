"""Attentions whose cost grows with the length and not with its square, in place of the paper's
(Vaswani et al. 2017, section 3.2.1): one without a softmax, and one to K projected keys.
"""

import keras
from keras import ops

from keras_transformer.layers.attention_variants.restricted import (
    count_of_blocks,
    from_blocks,
    into_blocks,
    of_one_length,
    width_of_blocks,
)
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.prototypes import check_sizes
from keras_transformer.layers.scaled_dot_product import AttentionHeads, scaled_dot_product_attention
from keras_transformer.layers.tensors import ALL, Masks, Tensor

# Positions of a block of a causal sequence. Within a block, all pairs are computed.
BLOCK = 64
# Below any sum of features, except the 0 of a query that may attend to nothing.
LEAST = 1e-30


@keras.saving.register_keras_serializable("keras_transformer")
class LinearHeads(AttentionHeads):
    """Linear attention: a product of features replaces the softmax.

        head_t = phi(q_t) sum_s phi(k_s)^T v_s / (phi(q_t) sum_s phi(k_s)^T),  phi(x) = elu(x) + 1

    Keys and values enter by the two sums alone, so a decoder's state has a fixed size. It replaces
    self-attention, in the encoder and in the decoder; the attention to the memory stays the
    paper's. Sums are taken in float32.

    Call arguments: as in `AttentionHeads`, with an attention mask of (B, 1, S).

    Reference: Katharopoulos et al. 2020, "Transformers are RNNs: Fast Autoregressive Transformers
        with Linear Attention", eq. 5 to 12.
    """

    def call(self, query: Tensor, key: Tensor, value: Tensor, masks: Masks = ALL) -> Tensor:
        queries = features(query)
        keys = _without_padding(features(key), masks)
        values = ops.cast(value, "float32")
        attend = _attend_to_all if masks.causal is None else _attend_to_previous
        return ops.cast(attend(queries, keys, values), query.dtype)

    def with_weights(
        self, query: Tensor, key: Tensor, value: Tensor, masks: Masks = ALL
    ) -> tuple[Tensor, Tensor]:
        """Return the result of `call`, and how much each query attends to each key, (B, h, T, S):
        the products of the features, each row divided by its sum.
        """
        keys = _without_padding(features(key), masks)
        products = ops.matmul(features(query), ops.swapaxes(keys, -1, -2))
        if masks.causal is not None:
            products = ops.where(masks.causal[:, None], products, 0.0)
        sums = ops.sum(products, axis=-1, keepdims=True)
        weights = ops.cast(products / ops.maximum(sums, LEAST), query.dtype)
        return ops.matmul(weights, value), weights

    def stepper(self) -> "LinearStepper":
        return LinearStepper(self)


class LinearStepper:
    """Attention of each row's newest position to itself and all positions before it, called as
    `SoftmaxStepper`.

    The state is sum_s phi(k_s)^T v_s, float32 (rows, h, d_k, d_v), and sum_s phi(k_s)^T, float32
    (rows, h, d_k, 1). Its size is fixed.
    """

    growing = (-1, -1)

    def __init__(self, heads: LinearHeads):
        self._sizes = heads.sizes

    def start(self, rows: int | Tensor) -> tuple[Tensor, Tensor]:
        heads, d_k, d_v = self._sizes
        return tuple(ops.zeros((rows, heads, d_k, width), dtype="float32") for width in (d_v, 1))

    def __call__(
        self, query_key: Tensor, value: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        query, key = ops.split(query_key, 2, axis=1)
        newest = ops.swapaxes(features(key), -1, -2)
        value_sum, key_sum = state
        value_sum = value_sum + newest * ops.cast(value, "float32")
        key_sum = key_sum + newest
        query_features = features(query)
        sums = ops.maximum(ops.matmul(query_features, key_sum), LEAST)
        heads = ops.matmul(query_features, value_sum) / sums
        return ops.cast(heads, query.dtype), (value_sum, key_sum)


def features(x: Tensor) -> Tensor:
    """Return phi(x) = elu(x) + 1, positive, float32."""
    return ops.elu(ops.cast(x, "float32")) + 1.0


def _without_padding(keys, masks):
    mask = masks.of_keys()
    return keys if mask is None else ops.where(mask[:, :, :, None], keys, 0.0)


def _attend_to_all(queries, keys, values):
    """Attend by features, (B, h, T, d_k) and (B, h, S, d_k), to all values, (B, h, S, d_v)."""
    transposed = ops.swapaxes(keys, -1, -2)
    sums = ops.matmul(queries, ops.sum(transposed, axis=-1, keepdims=True))
    return ops.matmul(queries, ops.matmul(transposed, values)) / ops.maximum(sums, LEAST)


def _attend_to_previous(queries, keys, values):
    """Attend to no later key: by pairs within a block, and to earlier blocks by their sums."""
    keys, values = of_one_length(queries, keys, values)
    batch, heads, length, _ = ops.shape(queries)
    width = width_of_blocks(BLOCK, length)
    count = count_of_blocks(length, width)
    # A last column of ones sums the features, as the other columns sum the values.
    values = ops.concatenate([values, ops.ones_like(values[..., :1])], axis=-1)
    queries, keys, values = (into_blocks(x, width) for x in (queries, keys, values))
    places = ops.arange(width)
    products = ops.matmul(queries, ops.swapaxes(keys, -1, -2))
    pairs = ops.where(places[:, None] >= places, products, 0.0)
    sums = ops.matmul(ops.swapaxes(keys, -1, -2), values)
    by_block = ops.reshape(sums, (batch, count, heads, keys.shape[-1], values.shape[-1]))
    before = ops.reshape(ops.cumsum(by_block, axis=1) - by_block, ops.shape(sums))
    attended = ops.matmul(pairs, values) + ops.matmul(queries, before)
    attended = from_blocks(attended, batch, length)
    return attended[..., :-1] / ops.maximum(attended[..., -1:], LEAST)


@keras.saving.register_keras_serializable("keras_transformer")
class LowRankHeads(AttentionHeads):
    """Linformer's attention: two learned matrices mix n keys and values into K of each.

        softmax(Q (E K)^T / sqrt(d_k)) (F V),    E, F: (K, n)

    It replaces the encoder's self-attention. A decoder cannot have it, because each projected key
    mixes in later positions. All heads of a layer share E and F. A sentence of n positions uses
    their first n columns; positions beyond `max_positions` use the last one. Padding counts as 0.

    Args:
        rank: K, at least 1.
        max_positions: number of columns of E and F.
        dropout: probability in [0, 255/256] on the attention weights.

    Call arguments: as in `AttentionHeads`, with an attention mask of (B, 1, S) and none that is
        causal.

    Reference: Wang et al. 2020, "Linformer: Self-Attention with Linear Complexity", eq. 7.
    """

    def __init__(self, rank: int, max_positions: int = 1024, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        check_sizes(rank=rank, max_positions=max_positions)
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
        self, query: Tensor, key: Tensor, value: Tensor, masks: Masks = ALL
    ) -> tuple[Tensor, Tensor]:
        """Return the result of `call`, and the weight of each value for each query, (B, h, T, S).

        These weights come from F; rows do not sum to 1, and they may be negative.
        """
        heads, weights, columns = self._attend(query, key, value, masks)
        return heads, ops.matmul(weights, ops.swapaxes(columns, -1, -2))

    def call(self, query: Tensor, key: Tensor, value: Tensor, masks: Masks = ALL) -> Tensor:
        return self._attend(query, key, value, masks)[0]

    def _attend(self, query, key, value, masks):
        """Return the heads, the weights of the K projected keys, (B, h, T, K), and the values' F^T
        without padding, broadcastable to (B, h, S, K).
        """
        if masks.causal is not None:
            raise ValueError(
                "`causal` must be None, because each projected key holds all positions. "
                "Received: a mask. Give the decoder SoftmaxHeads()."
            )
        places = ops.minimum(ops.arange(ops.shape(key)[2]), self.max_positions - 1)
        mask = masks.of_keys()
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
