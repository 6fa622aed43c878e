"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1, eq. 1)."""

from keras import ops

from keras_transformer.layers.tensors import Tensor


def scaled_dot_products(query: Tensor, key: Tensor) -> Tensor:
    """Q K^T / sqrt(d_k), what the softmax of eq. 1 takes.

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).

    Returns:
        float32, (..., T, S).
    """
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2))
    return ops.cast(scores, "float32") * key.shape[-1] ** -0.5


def masked_softmax(scores: Tensor, mask: Tensor | None, dtype: str) -> Tensor:
    """The softmax over the keys that may be attended to, with a finite floor.

    Args:
        scores: float32, (..., T, S).
        mask: booleans broadcastable to (..., T, S), True where the query may attend.
        dtype: that of the result.

    Returns:
        (..., T, S); rows sum to 1, or to 0 where everything is masked, never NaN.
    """
    if mask is None:
        return ops.cast(ops.softmax(scores), dtype)
    weights = ops.softmax(ops.where(mask, scores, -1e30))
    return ops.cast(ops.where(mask, weights, 0.0), dtype)


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
    return masked_softmax(scaled_dot_products(query, key), attention_mask, query.dtype)


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
