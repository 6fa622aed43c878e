"""The encoder: a stack of N identical layers of self-attention and feed-forward (Vaswani et al.
2017, section 3.1).
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import keras
from keras import ops

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.residual import (
    NormPlacement,
    PostNorm,
    depth_scaled,
    norm_placement,
)
from keras_transformer.layers.tensors import Sublayer, Tensor


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
        output_initializer: initializer of the last matrix of each sublayer.
        norm: where each layer normalization stands: `PostNorm`, the paper's, or `PreNorm`.

    Call arguments:
        x: (B, S, d_model).
        attention_mask: booleans broadcastable to (B, S, S), True where the query may attend.

    Returns:
        (B, S, d_model).
    """

    sublayers = 2

    def __init__(
        self,
        num_heads: int,
        d_model: int,
        d_ff: int,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        activation: str | Callable = "relu",
        output_initializer: str | keras.initializers.Initializer = "glorot_uniform",
        norm: str | type[NormPlacement] = PostNorm,
        **kwargs,
    ):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self._attention = functools.partial(
            MultiHeadAttention, num_heads, d_model, d_k, d_v, output_initializer, dtype=policy
        )
        self._norm = functools.partial(norm_placement(norm), dropout, dtype=policy)
        self.self_attention = self._attention(name="self_attention")
        self.self_attention_norm = self._norm(name="self_attention_norm")
        self.feed_forward = FeedForward(
            d_ff, activation, output_initializer, dtype=policy, name="feed_forward"
        )
        self.feed_forward_norm = self._norm(name="feed_forward_norm")

    def build(self, x_shape):
        self.self_attention.build(x_shape, x_shape, x_shape)
        self.self_attention_norm.build(x_shape)
        self.feed_forward.build(x_shape)
        self.feed_forward_norm.build(x_shape)

    def through(self, x: Tensor, attend: Sublayer, feed: Sublayer) -> tuple[Tensor, list[Any]]:
        """The order of the sublayers. Returns x and each one's by-product."""
        x, attended = self.self_attention_norm(x, sublayer=attend)
        x, fed = self.feed_forward_norm(x, sublayer=feed)
        return x, [attended, fed]

    def _feed(self, x):
        return self.feed_forward(x), None

    def call(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        def attend(x):
            return self.self_attention(x, x, x, attention_mask=attention_mask), None

        x, _ = self.through(x, attend, self._feed)
        return x

    def with_attention(
        self, x: Tensor, attention_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """`call`, and second what the heads attend to, (B, h, S, S)."""

        def attend(x):
            return self.self_attention.with_attention(x, x, x, attention_mask)

        x, [weights, _] = self.through(x, attend, self._feed)
        return x, weights

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
            "norm": keras.saving.get_registered_name(type(self.feed_forward_norm)),
        }


@keras.saving.register_keras_serializable("keras_transformer")
class Encoder(keras.layers.Layer):
    """A stack of N `EncoderLayer`s, and what the norm's placement puts behind the last one.

    Args:
        num_layers: N.
        num_heads, d_model, d_ff, d_k, d_v, dropout, activation, norm: as in `EncoderLayer`.
        residual_initialization: gives the initializer of the last matrix of each sublayer, from how
            many sublayers the stack has: `depth_scaled`, `glorot` or another function, or the name
            that it is registered under.

    Call arguments:
        x: embedded source, (B, S, d_model).
        attention_mask: booleans broadcastable to (B, S, S).

    Returns:
        The memory that the decoder attends to, (B, S, d_model).
    """

    layer = EncoderLayer

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        d_model: int,
        d_ff: int,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        activation: str | Callable = "relu",
        norm: str | type[NormPlacement] = PostNorm,
        residual_initialization: str | Callable = depth_scaled,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if isinstance(residual_initialization, str):
            residual_initialization = keras.saving.get_registered_object(residual_initialization)
        self.residual_initialization = residual_initialization
        start = residual_initialization(self.layer.sublayers * num_layers)
        self.layers = [
            self.layer(
                num_heads,
                d_model,
                d_ff,
                d_k=d_k,
                d_v=d_v,
                dropout=dropout,
                activation=activation,
                output_initializer=start,
                norm=norm,
                dtype=self.dtype_policy,
                name=f"layer_{n}",
            )
            for n in range(num_layers)
        ]
        self.final_norm = norm_placement(norm).end_of_stack(dtype=self.dtype_policy)

    def build(self, x_shape):
        for layer in self.layers:
            layer.build(x_shape)
        self.final_norm.build(x_shape)

    def through(
        self, x: Tensor, through_layer: Callable[..., tuple[Tensor, Any]], *of_layers: Iterable
    ) -> tuple[Tensor, list[Any]]:
        """The order of the layers.

        Args:
            x: (..., d_model).
            through_layer: x and what `of_layers` hold for one layer -> x and a by-product.
            of_layers: iterables of N.

        Returns:
            x, and the N by-products.
        """
        by_products = []
        for of_layer in zip(*of_layers, strict=True):
            x, by_product = through_layer(x, *of_layer)
            by_products.append(by_product)
        return self.final_norm(x), by_products

    def call(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        def through_layer(x, layer):
            return layer(x, attention_mask=attention_mask), None

        x, _ = self.through(x, through_layer, self.layers)
        return x

    def with_attention(
        self, x: Tensor, attention_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """`call`, and second what every layer's heads attend to, (B, N, h, S, S)."""

        def through_layer(x, layer):
            return layer.with_attention(x, attention_mask)

        x, weights = self.through(x, through_layer, self.layers)
        return x, ops.stack(weights, axis=1)

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        config = super().get_config()
        layer = {
            name: value for name, value in self.layers[0].get_config().items() if name not in config
        }
        del layer["output_initializer"]
        start = keras.saving.get_registered_name(self.residual_initialization)
        sizes = {"num_layers": len(self.layers), "residual_initialization": start}
        return {**config, **sizes, **layer}
