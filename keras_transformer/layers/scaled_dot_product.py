"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1, eq. 1), and the two attentions
that the section compares it with: the unscaled dot product and the additive one.
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_transformer.layers.prototypes import Part
from keras_transformer.layers.tensors import Tensor

# So low that after the softmax a masked key has weight exactly 0.
FLOOR = -1e30


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    bias: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V   (eq. 1).

    The softmax runs in float32. A query that may attend to nothing gets zeros, never NaN.

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).
        value: (..., S, d_v).
        attention_mask: booleans broadcastable to (..., T, S), True where the query may attend.
        bias: float32, broadcastable to (..., T, S), added to what the softmax takes.
        dropout: applied to the weights; the paper has none there.

    Returns:
        The attended values, (..., T, d_v), and the weights, (..., T, S). Rows of the weights sum to
        1, or to 0 where everything is masked.
    """
    # The queries are scaled, for they are fewer numbers than the products.
    scaled = query * key.shape[-1] ** -0.5
    scores = ops.cast(ops.matmul(scaled, ops.swapaxes(key, -1, -2)), "float32")
    return attention_by(scores if bias is None else scores + bias, value, attention_mask, dropout)


def attention_by(
    scores: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """softmax(scores) V, for scores in float32, (..., T, S); the rest as in eq. 1 above."""
    allowed = scores if attention_mask is None else _floored(scores, attention_mask)
    weights = ops.cast(ops.softmax(allowed), value.dtype)
    if dropout is not None:
        weights = dropout(weights)
    attended = ops.matmul(weights, value)
    if attention_mask is None:
        return attended, weights
    # The softmax of a row without any allowed key is uniform, and means nothing.
    has_key = ops.any(attention_mask, axis=-1, keepdims=True)
    return ops.where(has_key, attended, 0.0), ops.where(has_key, weights, 0.0)


def _floored(scores, mask):
    """The scores, and FLOOR where the mask is False."""

    @ops.custom_gradient
    def floored(scores):
        # The softmax gives a masked score no gradient: there is nothing to choose on the way back.
        def gradient(*args, upstream=None):
            return args[-1] if upstream is None else upstream

        # Not the scores + 0 or the floor: TensorFlow would make one operation of product and sum,
        # which oneDNN has no fast code for (on a CPU attention takes 20 times as long).
        return ops.where(mask, scores, FLOOR), gradient

    return floored(scores)


class Similarity(Part):
    """How a query is compared with a key: what the softmax of an attention takes."""

    def build(self, query_shape):
        """Make the weights for queries of (B, h, T, d_k)."""

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Compare each query (B, h, T, d_k) with each key (B, h, S, d_k): float32, (B, h, T, S)."""
        raise NotImplementedError

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        bias: Tensor | None = None,
        dropout: Callable[[Tensor], Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Attention by these scores, as `scaled_dot_product_attention`."""
        scores = self.scores(query, key)
        scores = scores if bias is None else scores + bias
        return attention_by(scores, value, attention_mask, dropout)


@keras.saving.register_keras_serializable("keras_transformer")
class ScaledDotProduct(Similarity):
    """The paper's comparison, q k^T / sqrt(d_k), used by all three attentions: eq. 1."""

    attend = staticmethod(scaled_dot_product_attention)


@keras.saving.register_keras_serializable("keras_transformer")
class DotProduct(Similarity):
    """The dot product without the scaling, q k^T, in place of all three attentions.

    The variance of q k^T is d_k where the components of q and k have variance 1 (footnote 4). For
    large d_k the softmax saturates, and its gradient vanishes.

    Reference: Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine
        Translation", section 3.1.
    """

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return ops.cast(ops.matmul(query, ops.swapaxes(key, -1, -2)), "float32")


@keras.saving.register_keras_serializable("keras_transformer")
class Additive(Similarity):
    """Additive attention, in place of all three: "a feed-forward network with a single hidden
    layer".

        v^T tanh(q + k),    q = x W^Q, k = y W^K: the hidden layer has width d_k

    Each head has a vector v of its own. There are d_k hyperbolic tangents for each pair of query
    and key, so that memory and time grow with T S d_k.

    Reference: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and
        Translate", appendix A.1.2.
    """

    def build(self, query_shape):
        heads = query_shape[1]
        width = query_shape[-1]
        # A sum of d_k terms starts with variance 1 or less.
        self.vector = self.add_weight(
            name="vector",
            shape=(heads, width),
            initializer=keras.initializers.RandomNormal(stddev=width**-0.5),
        )

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        hidden = ops.tanh(ops.expand_dims(query, -2) + ops.expand_dims(key, -3))
        vector = ops.cast(self.vector, hidden.dtype)[:, None, :, None]
        return ops.cast(ops.matmul(hidden, vector)[..., 0], "float32")
