"""The encoder: a stack of N identical layers of self-attention and feed-forward (Vaswani et al.
2017, section 3.1).
"""

import keras
from keras import ops

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.residual import PostNorm, residual_initializer


@keras.saving.register_keras_serializable("keras_transformer")
class EncoderLayer(keras.layers.Layer):
    """Self-attention, then a feed-forward network, each inside an Add & Norm.

        x = PostNorm(x, MultiHead(x, x, x))
        x = PostNorm(x, FFN(x))

    With a causal mask this is also the layer of a decoder-only model.

    Args:
        num_heads: h.
        d_model: width of input and output.
        d_ff: inner width of the feed-forward network.
        d_k, d_v: widths of a head, as in `MultiHeadAttention`.
        dropout: probability in [0, 1) on each sublayer's output.
        activation: between the two maps of the feed-forward network.
        output_initializer: how the last matrix of each sublayer starts.

    Call arguments:
        x: (B, S, d_model).
        attention_mask: booleans broadcastable to (B, S, S), True where the query may attend.

    Returns:
        (B, S, d_model).
    """

    def __init__(
        self,
        num_heads,
        d_model,
        d_ff,
        d_k=None,
        d_v=None,
        dropout=0.0,
        activation="relu",
        output_initializer="glorot_uniform",
        **kwargs,
    ):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.self_attention = MultiHeadAttention(
            num_heads, d_model, d_k, d_v, output_initializer, dtype=policy, name="self_attention"
        )
        self.self_attention_norm = PostNorm(dropout, dtype=policy, name="self_attention_norm")
        self.feed_forward = FeedForward(
            d_ff, activation, output_initializer, dtype=policy, name="feed_forward"
        )
        self.feed_forward_norm = PostNorm(dropout, dtype=policy, name="feed_forward_norm")

    def build(self, x_shape):
        self.self_attention.build(x_shape, x_shape, x_shape)
        self.self_attention_norm.build(x_shape, x_shape)
        self.feed_forward.build(x_shape)
        self.feed_forward_norm.build(x_shape, x_shape)

    def call(self, x, attention_mask=None):
        x = self.self_attention_norm(x, self.self_attention(x, x, x, attention_mask=attention_mask))
        return self.feed_forward_norm(x, self.feed_forward(x))

    def attentive(self, x, attention_mask=None):
        """`call`, and what the heads attend to, (B, h, T, T), second."""
        attended, weights = self.self_attention.attentive(
            x, *self.self_attention.keys_and_values(x, x), attention_mask
        )
        x = self.self_attention_norm(x, attended)
        return self.feed_forward_norm(x, self.feed_forward(x)), weights

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        attention = self.self_attention.get_config()
        feed_forward = self.feed_forward.get_config()
        return {
            **super().get_config(),
            **{name: attention[name] for name in ("num_heads", "d_model", "d_k", "d_v")},
            **{name: feed_forward[name] for name in ("d_ff", "activation", "output_initializer")},
            "dropout": self.feed_forward_norm.dropout,
        }


@keras.saving.register_keras_serializable("keras_transformer")
class Encoder(keras.layers.Layer):
    """A stack of N `EncoderLayer`s.

    Args:
        num_layers: N.
        num_heads, d_model, d_ff, d_k, d_v, dropout, activation: as in `EncoderLayer`.

    Call arguments:
        x: embedded source, (B, S, d_model).
        attention_mask: booleans broadcastable to (B, S, S).

    Returns:
        The memory that the decoder attends to, (B, S, d_model).
    """

    layer = EncoderLayer
    sublayers = 2

    def __init__(
        self,
        num_layers,
        num_heads,
        d_model,
        d_ff,
        d_k=None,
        d_v=None,
        dropout=0.0,
        activation="relu",
        **kwargs,
    ):
        super().__init__(**kwargs)
        start = residual_initializer(self.sublayers * num_layers)
        self.layers = [
            self.layer(
                num_heads,
                d_model,
                d_ff,
                d_k,
                d_v,
                dropout,
                activation,
                start,
                dtype=self.dtype_policy,
                name=f"layer_{n}",
            )
            for n in range(num_layers)
        ]

    def build(self, x_shape):
        for layer in self.layers:
            layer.build(x_shape)

    def call(self, x, attention_mask=None):
        for layer in self.layers:
            x = layer(x, attention_mask=attention_mask)
        return x

    def attentive(self, x, attention_mask=None):
        """`call`, and what every layer's heads attend to, (B, N, h, S, S), second."""
        weights = []
        for layer in self.layers:
            x, attended = layer.attentive(x, attention_mask)
            weights.append(attended)
        return x, ops.stack(weights, axis=1)

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        config = super().get_config()
        layer = {
            name: value for name, value in self.layers[0].get_config().items() if name not in config
        }
        del layer["output_initializer"]
        return {**config, "num_layers": len(self.layers), **layer}
