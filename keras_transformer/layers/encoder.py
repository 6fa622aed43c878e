"""The encoder: N layers of attention and feed-forward (Vaswani et al. 2017, section 3.1)."""

import functools
from collections.abc import Callable, Iterable
from typing import Any

import keras
from keras import ops

from keras_transformer.layers.add_and_norm import EPSILON, NormPlacement, PostNorm, depth_scaled
from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.prototypes import KeepsShape, check_sizes, class_of, description
from keras_transformer.layers.scaled_dot_product import AttentionHeads
from keras_transformer.layers.tensors import Sublayer, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class EncoderLayer(KeepsShape):
    """Self-attention, then a feed-forward network, each inside an Add & Norm.

        x = PostNorm(x, MultiHead(x, x, x))
        x = PostNorm(x, FFN(x))

    With a causal mask this is also the layer of a decoder-only model.

    Args:
        num_heads: h.
        d_model: width of input and output.
        d_ff: inner width of the feed-forward network.
        d_k, d_v: widths of a head, as in `MultiHeadAttention`.
        dropout: probability in [0, 255/256] on each sublayer's output.
        activation: between the two maps of the feed-forward network.
        output_initializer: initializer of the last matrix of each sublayer.
        norm: where each layer normalization stands: `PostNorm`, the paper's, or `PreNorm`.
        heads: `AttentionHeads` of the self-attention, as in `MultiHeadAttention`.
        feed_forward: `FeedForward`, the paper's, or a subclass.
        activation_dropout: probability in [0, 255/256] after the activation.
        attention_bias: whether the maps of the attentions have biases.
        norm_epsilon: what the norms add to the variance.

    Call arguments:
        x: (B, S, d_model).
        attention_mask: booleans broadcastable to (B, S, S), True where the query may attend.
        causal: `causal_mask(S)` or None, as in `MultiHeadAttention`.

    Returns:
        (B, S, d_model).
    """

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
        heads: AttentionHeads | dict[str, Any] | None = None,
        feed_forward: str | type[FeedForward] = FeedForward,
        activation_dropout: float = 0.0,
        attention_bias: bool = False,
        norm_epsilon: float = EPSILON,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.input_spec = keras.InputSpec(ndim=3, axes={-1: d_model})
        policy = self.dtype_policy
        arguments = (num_heads, d_model, d_k, d_v, output_initializer)
        options = {"use_bias": attention_bias, "dtype": policy}
        self._attention = functools.partial(MultiHeadAttention, *arguments, **options)
        placement = class_of("norm", norm, NormPlacement, PostNorm)
        self._norm = functools.partial(placement, dropout, norm_epsilon, dtype=policy)
        self.self_attention = self._attention(heads=heads, name="self_attention")
        self.self_attention_norm = self._norm(name="self_attention_norm")
        network = class_of("feed_forward", feed_forward, FeedForward, FeedForward)
        maps = (d_ff, activation, output_initializer, activation_dropout)
        self.feed_forward = network(*maps, dtype=policy, name="feed_forward")
        self.feed_forward_norm = self._norm(name="feed_forward_norm")

    @classmethod
    def sublayers_of(cls, **variants) -> int:
        """Count the sublayers that a layer with these arguments adds to its residual stream."""
        return 2

    def build(self, x_shape):
        self.self_attention.build(x_shape, x_shape, x_shape)
        self.self_attention_norm.build(x_shape)
        self.feed_forward.build(x_shape)
        self.feed_forward_norm.build(x_shape)

    def through(self, x: Tensor, attend: Sublayer, feed: Sublayer) -> tuple[Tensor, list[Any]]:
        """Apply the sublayers in order. Returns x and each sublayer's by-product."""
        x, attended = self.self_attention_norm(x, sublayer=attend)
        x, fed = self.feed_forward_norm(x, sublayer=feed)
        return x, [attended, fed]

    def _feed(self, x):
        return self.feed_forward(x), None

    def call(
        self, x: Tensor, attention_mask: Tensor | None = None, causal: Tensor | None = None
    ) -> Tensor:
        def attend(x):
            return self.self_attention(x, x, x, attention_mask=attention_mask, causal=causal), None

        return self.through(x, attend, self._feed)[0]

    def with_attention(
        self, x: Tensor, attention_mask: Tensor | None = None, causal: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the result of `call`, and the heads' attention weights, (B, h, S, S)."""

        def attend(x):
            return self.self_attention.with_attention(x, x, x, attention_mask, causal)

        x, [weights, _] = self.through(x, attend, self._feed)
        return x, weights

    def get_config(self):
        attention = self.self_attention.get_config()
        feed_forward = self.feed_forward.get_config()
        return {
            **super().get_config(),
            **{name: attention[name] for name in ("num_heads", "d_model", "d_k", "d_v")},
            **{name: feed_forward[name] for name in ("d_ff", "activation", "output_initializer")},
            "dropout": self.feed_forward_norm.dropout,
            "norm": keras.saving.get_registered_name(type(self.feed_forward_norm)),
            "heads": description(self.self_attention.heads),
            "feed_forward": keras.saving.get_registered_name(type(self.feed_forward)),
            "activation_dropout": feed_forward["dropout"],
            "attention_bias": self.self_attention.use_bias,
            "norm_epsilon": self.feed_forward_norm.epsilon,
        }


@keras.saving.register_keras_serializable("keras_transformer")
class Encoder(KeepsShape):
    """A stack of N `EncoderLayer`s, followed by the `end_of_stack` of the norm's placement.

    Args:
        num_layers: N.
        num_heads, d_model, d_ff: as in `EncoderLayer`.
        residual_initialization: function from the number of the stack's sublayers to the
            initializer of each one's last matrix: `depth_scaled`, `glorot` or your own, or its
            registered name.
        **variants: further arguments of `EncoderLayer`, by name.

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
        residual_initialization: str | Callable = depth_scaled,
        dtype: str | keras.DTypePolicy | None = None,
        name: str | None = None,
        trainable: bool = True,
        **variants,
    ):
        super().__init__(dtype=dtype, name=name, trainable=trainable)
        check_sizes(num_layers=num_layers)
        start = class_of("residual_initialization", residual_initialization, None, depth_scaled)
        self.residual_initialization = start
        initializer = start(self.layer.sublayers_of(**variants) * num_layers)
        of_stack = {"output_initializer": initializer, "dtype": self.dtype_policy}
        self.layers = [
            self.layer(num_heads, d_model, d_ff, name=f"layer_{n}", **of_stack, **variants)
            for n in range(num_layers)
        ]
        norm = self.layers[-1].feed_forward_norm
        self.final_norm = norm.end_of_stack(norm.epsilon, dtype=self.dtype_policy)

    def build(self, x_shape, *other_shapes):
        for layer in self.layers:
            layer.build(x_shape, *other_shapes)
        self.final_norm.build(x_shape)

    def through(
        self, x: Tensor, through_layer: Callable[..., tuple[Tensor, Any]], *of_layers: Iterable
    ) -> tuple[Tensor, list[Any]]:
        """Apply the layers in order. `through_layer` takes x and one layer's items of `of_layers`,
        iterables of N, and returns x and a by-product. Returns x, and the N by-products.
        """
        by_products = []
        for of_layer in zip(*of_layers, strict=True):
            x, by_product = through_layer(x, *of_layer)
            by_products.append(by_product)
        return self.final_norm(x), by_products

    def call(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        def through_layer(x, layer):
            return layer(x, attention_mask=attention_mask), None

        return self.through(x, through_layer, self.layers)[0]

    def with_attention(
        self, x: Tensor, attention_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the result of `call`, and every layer's attention weights, (B, N, h, S, S)."""

        def through_layer(x, layer):
            return layer.with_attention(x, attention_mask)

        x, weights = self.through(x, through_layer, self.layers)
        return x, ops.stack(weights, axis=1)

    def get_config(self):
        config = super().get_config()
        layer = self.layers[0].get_config()
        del layer["output_initializer"]
        start = keras.saving.get_registered_name(self.residual_initialization)
        sizes = {"num_layers": len(self.layers), "residual_initialization": start}
        return {**layer, **config, **sizes}
