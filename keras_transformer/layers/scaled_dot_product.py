"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1, eq. 1)."""

from keras import ops

from keras_transformer.layers.tensors import Tensor

# Beside it a score is nothing, and its exponential is 0 beside that of any score.
FLOOR = -1e30


def scaled_dot_products(query: Tensor, key: Tensor) -> Tensor:
    """Q K^T / sqrt(d_k), what the softmax of eq. 1 takes.

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).

    Returns:
        float32, (..., T, S).
    """
    # The queries are scaled, for they are fewer numbers than the products.
    scaled = query * key.shape[-1] ** -0.5
    return ops.cast(ops.matmul(scaled, ops.swapaxes(key, -1, -2)), "float32")


def softmax_of_allowed(scores: Tensor, mask: Tensor | None) -> Tensor:
    """The softmax over the keys that may be attended to, with a finite floor.

    Args:
        scores: float32, (..., T, S).
        mask: booleans broadcastable to (..., T, S), True where the query may attend.

    Returns:
        float32, (..., T, S); rows sum to 1, those too where everything is masked, which mean
        nothing: `unless_nothing_is_allowed` makes them 0.
    """
    if mask is None:
        return ops.softmax(scores)

    @ops.custom_gradient
    def floored(scores):
        # The softmax gives a masked score no gradient: there is nothing to choose on the way back.
        def gradient(*args, upstream=None):
            return args[-1] if upstream is None else upstream

        # Not the scores + 0 or the floor: TensorFlow would make one operation of product and sum,
        # which oneDNN has no fast code for (on a CPU attention takes 20 times as long).
        return ops.where(mask, scores, FLOOR), gradient

    return ops.softmax(floored(scores))


def unless_nothing_is_allowed(values: Tensor, mask: Tensor | None) -> Tensor:
    """Values of queries, and 0 of a query that may attend to nothing.

    Args:
        values: (..., T, d).
        mask: as in `softmax_of_allowed`.
    """
    if mask is None:
        return values
    return ops.where(ops.any(mask, axis=-1, keepdims=True), values, 0.0)


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
    weights = softmax_of_allowed(scaled_dot_products(query, key), attention_mask)
    return ops.cast(unless_nothing_is_allowed(weights, attention_mask), query.dtype)


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
    weights = softmax_of_allowed(scaled_dot_products(query, key), attention_mask)
    attended = ops.matmul(ops.cast(weights, value.dtype), value)
    return unless_nothing_is_allowed(attended, attention_mask)
