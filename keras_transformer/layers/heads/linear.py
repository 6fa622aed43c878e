"""Attention without a softmax, whose cost grows with the length and not with its square, in the
place of section 3.2.1's (Vaswani et al. 2017).
"""

import keras
from keras import ops

from keras_transformer.layers.heads.blocks import (
    count_of_blocks,
    from_blocks,
    into_blocks,
    width_of_blocks,
)
from keras_transformer.layers.heads.softmax import AttentionHeads, mask_of_keys
from keras_transformer.layers.tensors import Tensor

# Positions of a block of a causal sequence. Within one, all pairs are computed.
BLOCK = 64
# No sum of features is smaller unless it is 0, that of a query that may attend to nothing.
LEAST = 1e-30


@keras.saving.register_keras_serializable("keras_transformer")
class LinearHeads(AttentionHeads):
    """Linear attention: a product of features in the place of the softmax.

        head_t = phi(q_t) sum_s phi(k_s)^T v_s / phi(q_t) sum_s phi(k_s)^T,    phi(x) = elu(x) + 1

    The two sums are all that is kept of the keys and values, so that a decoder's state has a fixed
    size. It replaces self-attention, in the encoder and in the decoder; the attention to the
    memory stays the paper's. Sums are taken in float32.

    Call arguments: as in `AttentionHeads`, with an `attention_mask` of (B, 1, S).

    Reference: Katharopoulos et al. 2020, "Transformers are RNNs: Fast Autoregressive Transformers
        with Linear Attention", eq. 5 to 12.
    """

    def call(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> Tensor:
        queries = features(query)
        keys = _without_padding(features(key), attention_mask)
        values = ops.cast(value, "float32")
        attend = _to_all if causal is None else _to_those_before
        return ops.cast(attend(queries, keys, values), query.dtype)

    def with_weights(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """`call`, and second how much each query attends to each key, (B, h, T, S): what the
        features' products are, rows divided by their sums.
        """
        keys = _without_padding(features(key), attention_mask)
        products = ops.matmul(features(query), ops.swapaxes(keys, -1, -2))
        if causal is not None:
            products = ops.where(causal[:, None], products, 0.0)
        sums = ops.sum(products, axis=-1, keepdims=True)
        weights = ops.cast(products / ops.maximum(sums, LEAST), query.dtype)
        return ops.matmul(weights, value), weights

    def stepper(self) -> "LinearStepper":
        """Self-attention over two sums."""
        return LinearStepper(self)


class LinearStepper:
    """Attention of each row's newest position to itself and all positions before it.

    The state is sum_s phi(k_s)^T v_s, float32 (rows, h, d_k, d_v), and sum_s phi(k_s)^T, float32
    (rows, h, d_k, 1). Its size is fixed.

    Args:
        heads: built `LinearHeads`.

    Call arguments and result as in `SoftmaxStepper`.
    """

    growing = (-1, -1)

    def __init__(self, heads: LinearHeads):
        self._sizes = heads.sizes

    def start(self, rows: int | Tensor) -> tuple[Tensor, Tensor]:
        """The sums before the first position."""
        heads, d_k, d_v = self._sizes
        mixed, summed = (
            ops.zeros((rows, heads, d_k, width), dtype="float32") for width in (d_v, 1)
        )
        return mixed, summed

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        newest = ops.swapaxes(features(key), -1, -2)
        mixed, summed = state
        mixed = mixed + newest * ops.cast(value, "float32")
        summed = summed + newest
        query_features = features(query)
        sums = ops.maximum(ops.matmul(query_features, summed), LEAST)
        heads = ops.matmul(query_features, mixed) / sums
        return ops.cast(heads, query.dtype), (mixed, summed)


def features(x: Tensor) -> Tensor:
    """Phi(x) = elu(x) + 1, positive, float32."""
    return ops.elu(ops.cast(x, "float32")) + 1.0


def _without_padding(keys, attention_mask):
    mask = mask_of_keys(attention_mask)
    return keys if mask is None else ops.where(mask[:, :, :, None], keys, 0.0)


def _to_all(queries, keys, values):
    """Every query to every key: features (B, h, T, d_k) and (B, h, S, d_k), values (B, h, S,
    d_v).
    """
    transposed = ops.swapaxes(keys, -1, -2)
    sums = ops.matmul(queries, ops.sum(transposed, axis=-1, keepdims=True))
    return ops.matmul(queries, ops.matmul(transposed, values)) / ops.maximum(sums, LEAST)


def _to_those_before(queries, keys, values):
    """Every query to itself and the keys before it: within its block pair by pair, and to all
    blocks before by their sums.
    """
    batch, heads, length, _ = ops.shape(queries)
    width = width_of_blocks(BLOCK, length)
    count = count_of_blocks(length, width)
    # The last column adds the features up, as the others do the values.
    values = ops.concatenate([values, ops.ones_like(values[..., :1])], axis=-1)
    queries, keys, values = (into_blocks(x, width) for x in (queries, keys, values))
    places = ops.arange(width)
    pairs = ops.where(
        places[:, None] >= places, ops.matmul(queries, ops.swapaxes(keys, -1, -2)), 0.0
    )
    of_block = ops.matmul(ops.swapaxes(keys, -1, -2), values)
    apart = ops.reshape(of_block, (batch, count, heads, keys.shape[-1], values.shape[-1]))
    before = ops.reshape(ops.cumsum(apart, axis=1) - apart, ops.shape(of_block))
    mixed = ops.matmul(pairs, values) + ops.matmul(queries, before)
    mixed = from_blocks(mixed, batch, length)
    return mixed[..., :-1] / ops.maximum(mixed[..., -1:], LEAST)
