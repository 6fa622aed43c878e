"""The encoder: a stack of N identical layers of self-attention and feed-forward (Vaswani et al.
2017, section 3.1).
"""

from collections.abc import Callable, Iterable
from typing import Any

import keras
from keras import ops

from keras_transformer.layers.encoder_layer import EncoderLayer
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.heads.attention_heads import AttentionHeads
from keras_transformer.layers.residual import (
    EPSILON,
    NormPlacement,
    PostNorm,
    depth_scaled,
    norm_placement,
)
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class Encoder(keras.layers.Layer):
    """A stack of N `EncoderLayer`s, and what the norm's placement puts after the last one.

    Args:
        num_layers: N.
        num_heads, d_model, d_ff, d_k, d_v, dropout, activation, norm, heads, feed_forward,
            activation_dropout, attention_bias, norm_epsilon: as in `EncoderLayer`.
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
    sublayers = EncoderLayer.sublayers

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
        heads: AttentionHeads | dict[str, Any] | None = None,
        feed_forward: str | type[FeedForward] = FeedForward,
        activation_dropout: float = 0.0,
        attention_bias: bool = False,
        norm_epsilon: float = EPSILON,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if isinstance(residual_initialization, str):
            residual_initialization = keras.saving.get_registered_object(residual_initialization)
        self.residual_initialization = residual_initialization
        start = residual_initialization(self.sublayers * num_layers)
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
                heads=heads,
                feed_forward=feed_forward,
                activation_dropout=activation_dropout,
                attention_bias=attention_bias,
                norm_epsilon=norm_epsilon,
                dtype=self.dtype_policy,
                name=f"layer_{n}",
            )
            for n in range(num_layers)
        ]
        self.final_norm = norm_placement(norm).end_of_stack(norm_epsilon, dtype=self.dtype_policy)

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
