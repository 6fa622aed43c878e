"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1, eq. 1), the two attentions that
the section compares it with, and each of them in h heads (section 3.2.2): what `MultiHeadAttention`
computes between its projections.
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.prototypes import Part, like
from keras_transformer.layers.tensors import ALL, KeysAndValues, Masks, Tensor, distances

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
        bias: float32, broadcastable to (..., T, S), added to the scores before the softmax.
        dropout: applied to the weights; the paper has none there.

    Returns:
        The attended values, (..., T, d_v), and the weights, (..., T, S). Rows of the weights sum to
        1, or to 0 where everything is masked.
    """
    # Scale the queries, not the scores: they are fewer numbers.
    scaled = query * key.shape[-1] ** -0.5
    scores = ops.cast(ops.matmul(scaled, ops.swapaxes(key, -1, -2)), "float32")
    return attention_by(scores, value, attention_mask, bias, dropout)


def attention_by(scores, value, attention_mask=None, bias=None, dropout=None, product=ops.matmul):
    """Return softmax(scores + bias) V and the weights, for float32 scores (..., T, S). `product`
    multiplies weights by values. The rest is as in `scaled_dot_product_attention`.
    """
    scores = scores if bias is None else scores + bias
    allowed = scores if attention_mask is None else _floored(scores, attention_mask)
    weights = ops.cast(ops.softmax(allowed), value.dtype)
    weights = weights if dropout is None else dropout(weights)
    attended = product(weights, value)
    if attention_mask is None:
        return attended, weights
    # The softmax of a row without any allowed key is uniform and meaningless.
    has_key = ops.any(attention_mask, axis=-1, keepdims=True)
    return ops.where(has_key, attended, 0.0), ops.where(has_key, weights, 0.0)


def _floored(scores, mask):
    """Replace the scores by FLOOR where the mask is False."""

    @ops.custom_gradient
    def floored(scores):
        # The softmax gives a masked score no gradient, so the backward pass needs no mask.
        def gradient(*args, upstream=None):
            return args[-1] if upstream is None else upstream

        # Do not add 0 or FLOOR instead: TensorFlow would fuse product and sum into an operation for
        # which oneDNN has no fast code (on a CPU attention takes 20 times as long).
        return ops.where(mask, scores, FLOOR), gradient

    return floored(scores)


class Similarity(Part):
    """Base class of scores of queries and keys, which a softmax turns into attention weights."""

    def build(self, query_shape):
        """Make the weights for queries of (B, h, T, d_k)."""

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Compare each query (B, h, T, d_k) with each key (B, h, S, d_k): float32, (B, h, T, S)."""
        raise NotImplementedError

    def attend(self, query, key, value, attention_mask=None, bias=None, dropout=None):
        """Attend by these scores. Arguments and results: see `scaled_dot_product_attention`."""
        return attention_by(self.scores(query, key), value, attention_mask, bias, dropout)


@keras.saving.register_keras_serializable("keras_transformer")
class DotProduct(Similarity):
    """The dot product without the scaling, q k^T.

    The variance of q k^T is d_k where the components of q and k have variance 1 (footnote 4). For
    large d_k the softmax saturates, and its gradient vanishes.

    Reference: Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine
        Translation", section 3.1.
    """

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return ops.cast(ops.matmul(query, ops.swapaxes(key, -1, -2)), "float32")


@keras.saving.register_keras_serializable("keras_transformer")
class ScaledDotProduct(DotProduct):
    """The paper's scores, q k^T / sqrt(d_k) (eq. 1), for all three attentions."""

    attend = staticmethod(scaled_dot_product_attention)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return super().scores(query * key.shape[-1] ** -0.5, key)


@keras.saving.register_keras_serializable("keras_transformer")
class Additive(Similarity):
    """Additive attention: "a feed-forward network with a single hidden layer".

        v^T tanh(q + k),    q = x W^Q, k = y W^K: the hidden layer has width d_k

    Each head has its own vector v. Each pair of query and key needs d_k hyperbolic tangents, so
    memory and time grow with T S d_k.

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


# Saved models have the class under this name.
@keras.saving.register_keras_serializable("keras_transformer", "NoRelativePositions")
class RelativePositions(Part):
    """The paper's: attention knows only the positions in its input. Subclasses override methods."""

    def build(self, query_shape, value_shape):
        """Make the weights for queries (B, h, T, d_k) and values (B, h, S, d_v)."""

    def placed(self, x: Tensor, after: Tensor | None = None) -> Tensor:
        """Put positions into queries or keys (B, h, T, d_k), after keys (B, h, t, d_k) or at 0."""
        return x

    def score_bias(
        self, query: Tensor, key: Tensor, between: Callable = distances
    ) -> Tensor | None:
        """Return what to add to the scores, float32 broadcastable to (B, h, T, S); None: nothing.
        Queries are (B, h, T, d_k), keys (B, h, S, d_k); `between(T, S)` returns their `distances`.
        """
        return None

    def of_weights(self, weights: Tensor, between: Callable = distances) -> Tensor | None:
        """Return what to add to the heads, (B, h, T, d_v), for weights (B, h, T, S), or None."""
        return None


class AttentionHeads(Part):
    """Attention of h heads, from projected queries, keys and values to the outputs of the heads.

    `MultiHeadAttention` takes an instance and makes its own copy. A subclass defines
    `with_weights`. It also defines `call` if whole sequences are computed faster without the
    weights, and `stepper` if a decoder can use it.

    Call arguments:
        query: (B, h, T, d_k).
        key: (B, h, S, d_k).
        value: (B, h, S, d_v).
        masks: `Masks`, which keys each query may attend to.

    Returns:
        (B, h, T, d_v).
    """

    def build(self, query_shape, key_shape, value_shape):
        # h, d_k and d_v.
        self.sizes = (query_shape[1], query_shape[-1], value_shape[-1])

    def call(self, query: Tensor, key: Tensor, value: Tensor, masks: Masks = ALL) -> Tensor:
        return self.with_weights(query, key, value, masks)[0]

    def with_weights(
        self, query: Tensor, key: Tensor, value: Tensor, masks: Masks = ALL
    ) -> tuple[Tensor, Tensor]:
        """Return the result of `call`, and the weight of each key for each query, (B, h, T, S)."""
        raise NotImplementedError

    def stepper(self):
        """Make the counterpart of `SoftmaxStepper`: these heads for one new position at a time."""
        raise NotImplementedError

    def compute_output_shape(self, query_shape, key_shape, value_shape):
        return (*query_shape[:-1], value_shape[-1])


@keras.saving.register_keras_serializable("keras_transformer")
class SoftmaxHeads(AttentionHeads):
    """softmax(similarity(Q, K)) V. By default this is the paper's attention, eq. 1.

    Args:
        similarity: how a query is compared with a key: a `Similarity`, `ScaledDotProduct()` by
            default.
        positions: a `RelativePositions`, the effect of the distance between query and key. The
            default has no effect; the others suit self-attention only.
        dropout: probability in [0, 255/256] on the attention weights; the paper has none there.
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
        self.similarity = like(similarity or ScaledDotProduct(), Similarity, policy, "similarity")
        positions = positions or RelativePositions()
        self.positions = like(positions, RelativePositions, policy, "positions")
        self.dropout = dropout
        self.weights_dropout = Dropout(dropout, dtype=policy, name="weights_dropout")

    def build(self, query_shape, key_shape, value_shape):
        super().build(query_shape, key_shape, value_shape)
        self.similarity.build(query_shape)
        self.positions.build(query_shape, value_shape)

    def pattern(self, query: Tensor, key: Tensor) -> Tensor | None:
        """Return a mask of the allowed distances, booleans (1, T, S), where the last query and the
        last key have the same position; None: all are allowed.
        """
        return None

    def with_weights(
        self, query: Tensor, key: Tensor, value: Tensor, masks: Masks = ALL
    ) -> tuple[Tensor, Tensor]:
        mask = masks.joined(self.pattern(query, key))
        query, key = (self.positions.placed(x) for x in (query, key))
        return self.attend(query, key, value, mask)

    def attend(self, query, key, value, mask=None, between=distances):
        """Attend with queries and keys that were `placed`, by a mask for (B, h, T, S), at the
        distances `between` them.
        """
        bias = self.positions.score_bias(query, key, between)
        heads, weights = self.similarity.attend(query, key, value, mask, bias, self.weights_dropout)
        relative = self.positions.of_weights(weights, between)
        return heads if relative is None else heads + relative, weights

    def stepper(self) -> "SoftmaxStepper":
        return SoftmaxStepper(self)


class SoftmaxStepper:
    """Attention of each row's newest position to itself and all positions before it. It takes the
    queries and keys side by side, (rows, 2 h, 1, d_k), and the values, (rows, h, 1, d_v). For k new
    positions, a `mask` (k, t + k) says what each may attend to.

    The state is the cache of keys and values, (rows, h, t, d_k) and (rows, h, t, d_v). It grows by
    one along axis 2 at every step.
    """

    growing = (2, 2)

    def __init__(self, heads: SoftmaxHeads):
        self._heads = heads

    def start(self, rows: int | Tensor) -> KeysAndValues:
        count, *widths = self._heads.sizes
        dtype = self._heads.compute_dtype
        return tuple(ops.zeros((rows, count, 0, width), dtype=dtype) for width in widths)

    def __call__(
        self, query_key: Tensor, value: Tensor, state: KeysAndValues, mask: Tensor | None = None
    ) -> tuple[Tensor, KeysAndValues]:
        before, values_before = state
        query, key = ops.split(self._heads.positions.placed(query_key, after=before), 2, axis=1)
        keys = ops.concatenate([before, key], axis=2)
        values = ops.concatenate([values_before, value], axis=2)
        mask = Masks(None if mask is None else mask[None]).joined(self._heads.pattern(query, keys))
        return self._heads.attend(query, keys, values, mask)[0], (keys, values)
