"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1, eq. 1)."""

from keras import ops

from keras_transformer.layers.tensors import Tensor


def attention_weights(query: Tensor, key: Tensor, attention_mask: Tensor | None = None) -> Tensor:
    """How much each query attends to each key: softmax(Q K^T / sqrt(d_k)).

    The softmax runs in float32 with a finite floor. A query that may attend to nothing gets zeros,
    never NaN.

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).
        attention_mask: booleans broadcastable to (..., T, S), True where the query may attend.

    Returns:
        (..., T, S) of the query's dtype; rows sum to 1, or to 0 where everything is masked.
    """
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2))
    scores = ops.cast(scores, "float32") * key.shape[-1] ** -0.5
    if attention_mask is None:
        return ops.cast(ops.softmax(scores), query.dtype)
    weights = ops.softmax(ops.where(attention_mask, scores, -1e30))
    return ops.cast(ops.where(attention_mask, weights, 0.0), query.dtype)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None = None
) -> Tensor:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V   (eq. 1).

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).
        value: (..., S, d_v).
        attention_mask: as in `attention_weights`.

    Returns:
        (..., T, d_v).
    """
    return ops.matmul(attention_weights(query, key, attention_mask), value)
