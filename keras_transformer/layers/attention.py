"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2, eq. 1)."""

import keras
from keras import ops


def attention_weights(query, key, attention_mask=None, attention_bias=None):
    """How much each query attends to each key: softmax(Q K^T / sqrt(d_k)).

    The softmax runs in float32 with a finite floor, and a query that may attend to nothing gets
    zeros, never NaN.

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).
        attention_mask: booleans broadcastable to (..., T, S), True where the query may attend.
        attention_bias: added to the scaled scores before the softmax, broadcastable to (..., T, S).

    Returns:
        (..., T, S) of the query's dtype; rows sum to 1, or to 0 where everything is masked.
    """
    scores = ops.matmul(query, ops.swapaxes(key, -1, -2))
    scores = ops.cast(scores, "float32") * key.shape[-1] ** -0.5
    if attention_bias is not None:
        scores = scores + ops.cast(attention_bias, "float32")
    if attention_mask is None:
        return ops.cast(ops.softmax(scores), query.dtype)
    weights = ops.softmax(ops.where(attention_mask, scores, -1e30))
    return ops.cast(ops.where(attention_mask, weights, 0.0), query.dtype)


def scaled_dot_product_attention(query, key, value, attention_mask=None, attention_bias=None):
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V   (eq. 1).

    Args:
        query: (..., T, d_k).
        key: (..., S, d_k).
        value: (..., S, d_v).
        attention_mask, attention_bias: as in `attention_weights`.

    Returns:
        (..., T, d_v).
    """
    weights = attention_weights(query, key, attention_mask, attention_bias)
    return ops.matmul(weights, value)


@keras.saving.register_keras_serializable("keras_transformer")
class MultiHeadAttention(keras.layers.Layer):
    """Attention in h subspaces at once (section 3.2.2).

        MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O
        head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

    The h matrices W_i^Q of (d_model, d_k) lie side by side in one `query_kernel` of (d_model, h
    d_k), and so for K and V; `output_kernel` is W^O of (h d_v, d_model). As in the paper there are
    no biases.

    Args:
        num_heads: h.
        d_model: width of the output.
        d_k: width of a head's queries and keys; d_model / h when left out.
        d_v: width of a head's values; d_k when left out.
        output_initializer: how W^O starts.

    Call arguments:
        query: (B, T, d_model).
        key: (B, S, d_model).
        value: (B, S, d_model).
        attention_mask: booleans broadcastable to (B, T, S), True where the query may attend.
        attention_bias: broadcastable to (B, h, T, S), added to the scaled scores.

    Returns:
        (B, T, d_model).

    Raises:
        ValueError: if h does not divide d_model and d_k is not given.

    Example:
        attention = MultiHeadAttention(num_heads=8, d_model=512)
        y = attention(x, x, x, attention_mask=causal_mask(10))
    """

    def __init__(
        self, num_heads, d_model, d_k=None, d_v=None, output_initializer="glorot_uniform", **kwargs
    ):
        super().__init__(**kwargs)
        if num_heads < 1:
            raise ValueError(f"`num_heads` must be at least 1. Received: num_heads={num_heads}.")
        if d_k is None and d_model % num_heads:
            raise ValueError(
                f"`d_model` must be divisible by `num_heads`. Received: d_model={d_model}, "
                f"num_heads={num_heads}. "
                f"Try d_model={-(-d_model // num_heads) * num_heads}, or pass `d_k`."
            )
        self.num_heads = num_heads
        self.d_model = d_model
        self.d_k = d_k or d_model // num_heads
        self.d_v = d_v or self.d_k
        # A Keras initializer gives the same numbers at every call: a clone of its own draws others.
        self.output_initializer = keras.initializers.get(output_initializer).clone()

    def build(self, query_shape, key_shape, value_shape):
        def kernel(name, rows, columns, initializer="glorot_uniform"):
            return self.add_weight(name=name, shape=(rows, columns), initializer=initializer)

        self.query_kernel = kernel("query_kernel", query_shape[-1], self.num_heads * self.d_k)
        self.key_kernel = kernel("key_kernel", key_shape[-1], self.num_heads * self.d_k)
        self.value_kernel = kernel("value_kernel", value_shape[-1], self.num_heads * self.d_v)
        self.output_kernel = kernel(
            "output_kernel", self.num_heads * self.d_v, self.d_model, self.output_initializer
        )

    def call(self, query, key, value, attention_mask=None, attention_bias=None):
        keys, values = self.keys_and_values(key, value)
        return self.attend(query, keys, values, attention_mask, attention_bias)

    def keys_and_values(self, key, value):
        """Project once what may be attended to many times: the two halves of a decoding cache.

        Args:
            key: (B, S, d_model).
            value: (B, S, d_model).

        Returns:
            (K W^K, V W^V) split into heads: (B, h, S, d_k) and (B, h, S, d_v).
        """
        return self._heads(key, self.key_kernel), self._heads(value, self.value_kernel)

    def attend(self, query, keys, values, attention_mask=None, attention_bias=None):
        """The rest of `call`, given what `keys_and_values` returned.

        Args:
            query: (B, T, d_model).
            keys, values: (B, h, S, d_k) and (B, h, S, d_v).
            attention_mask, attention_bias: as in `call`.

        Returns:
            (B, T, d_model).
        """
        output, _ = self.attentive(query, keys, values, attention_mask, attention_bias)
        return output

    def attentive(self, query, keys, values, attention_mask=None, attention_bias=None):
        """`attend`, and the weights that it applies to the values, (B, h, T, S), second."""
        queries = self._heads(query, self.query_kernel)
        mask = None if attention_mask is None else ops.expand_dims(attention_mask, -3)
        weights = attention_weights(queries, keys, mask, attention_bias)
        heads = ops.transpose(ops.matmul(weights, values), (0, 2, 1, 3))
        concatenated = ops.reshape(
            heads, (ops.shape(query)[0], ops.shape(query)[1], self.num_heads * self.d_v)
        )
        return self._project(concatenated, self.output_kernel), weights

    def _project(self, x, kernel):
        # Keras casts inside __call__ only, and decoding comes in by other methods.
        return ops.matmul(ops.cast(x, self.compute_dtype), ops.cast(kernel, self.compute_dtype))

    def _heads(self, x, kernel):
        """(B, T, d_model) -> (B, h, T, d)."""
        x = self._project(x, kernel)
        batch = ops.shape(x)[0]
        length = ops.shape(x)[1]
        width = x.shape[-1]
        return ops.transpose(
            ops.reshape(x, (batch, length, self.num_heads, width // self.num_heads)), (0, 2, 1, 3)
        )

    def compute_output_shape(self, query_shape, key_shape, value_shape):
        return (*query_shape[:-1], self.d_model)

    def get_config(self):
        sizes = {
            "num_heads": self.num_heads,
            "d_model": self.d_model,
            "d_k": self.d_k,
            "d_v": self.d_v,
        }
        return {
            **super().get_config(),
            **sizes,
            "output_initializer": keras.initializers.serialize(self.output_initializer),
        }
