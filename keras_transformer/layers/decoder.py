"""The decoder: N layers of masked self-attention, attention to the memory, and feed-forward
(Vaswani et al. 2017, section 3.1).

`call` processes a whole target (training); a stepper adds one token per hypothesis from a cache
(decoding). Both give the same activations.
"""

import functools
from typing import Any

import keras
from keras import ops

from keras_transformer.layers.decoder_steppers import DecoderLayerStepper, DecoderStepper
from keras_transformer.layers.encoder import Encoder
from keras_transformer.layers.encoder_layer import EncoderLayer
from keras_transformer.layers.heads.attention_heads import AttentionHeads
from keras_transformer.layers.masks import causal_mask
from keras_transformer.layers.prototypes import described
from keras_transformer.layers.tensors import KeysAndValues, Sublayer, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class DecoderLayer(EncoderLayer):
    """An `EncoderLayer` with a third sublayer in its middle: "multi-head attention over the output
    of the encoder stack".

        x = PostNorm(x, MultiHead(x, x, x))            masked, so that no position sees a later one
        x = PostNorm(x, MultiHead(x, memory, memory))
        x = PostNorm(x, FFN(x))

    Args: as in `EncoderLayer`, after `d_ff` by name, and
        cross_heads: what the attention to the memory is, as in `MultiHeadAttention`.

    Call arguments:
        x: (B, T, d_model).
        memory: the encoder's output, (B, S, d_model).
        attention_mask: booleans broadcastable to (B, T, T).
        memory_mask: booleans broadcastable to (B, T, S).
        causal: `causal_mask(T)` or None, as in `MultiHeadAttention`.

    Returns:
        (B, T, d_model).
    """

    sublayers = 3

    def __init__(
        self,
        num_heads: int,
        d_model: int,
        d_ff: int,
        cross_heads: AttentionHeads | dict[str, Any] | None = None,
        **kwargs,
    ):
        super().__init__(num_heads, d_model, d_ff, **kwargs)
        self.cross_attention = self._attention(heads=cross_heads, name="cross_attention")
        self.cross_attention_norm = self._norm(name="cross_attention_norm")

    def build(self, x_shape, memory_shape):
        super().build(x_shape)
        self.cross_attention.build(x_shape, memory_shape, memory_shape)
        self.cross_attention_norm.build(x_shape)

    def through(
        self, x: Tensor, attend: Sublayer, look: Sublayer, feed: Sublayer
    ) -> tuple[Tensor, list[Any]]:
        """The order of the sublayers; `look` attends to the memory."""
        x, attended = self.self_attention_norm(x, sublayer=attend)
        x, looked = self.cross_attention_norm(x, sublayer=look)
        x, fed = self.feed_forward_norm(x, sublayer=feed)
        return x, [attended, looked, fed]

    def call(
        self,
        x: Tensor,
        memory: Tensor,
        attention_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> Tensor:
        def attend(x):
            masks = {"attention_mask": attention_mask, "causal": causal}
            return self.self_attention(x, x, x, **masks), None

        def look(x):
            return self.cross_attention(x, memory, memory, attention_mask=memory_mask), None

        x, _ = self.through(x, attend, look, self._feed)
        return x

    def with_attention(
        self,
        x: Tensor,
        memory: Tensor,
        attention_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """`call`, and second what the heads attend to: of the target (B, h, T, T), and of the
        memory (B, h, T, S).
        """

        def attend(x):
            return self.self_attention.with_attention(x, x, x, attention_mask, causal)

        def look(x):
            return self.cross_attention.with_attention(x, memory, memory, memory_mask)

        x, [to_target, to_memory, _] = self.through(x, attend, look, self._feed)
        return x, (to_target, to_memory)

    def stepper(self) -> DecoderLayerStepper:
        """The layer for one position at a time, with the weights as they are now."""
        return DecoderLayerStepper(self)

    def compute_output_shape(self, x_shape, memory_shape):
        return x_shape

    def get_config(self):
        return {**super().get_config(), "cross_heads": described(self.cross_attention.heads)}


@keras.saving.register_keras_serializable("keras_transformer")
class Decoder(Encoder):
    """A stack of N `DecoderLayer`s, and what the norm's placement puts after the last one.

    Args: as in `Encoder`, after `d_ff` by name, and
        cross_heads: what the attention to the memory is, as in `MultiHeadAttention`.

    Call arguments:
        x: embedded target, shifted right, (B, T, d_model).
        memory: the encoder's output, (B, S, d_model).
        memory_mask: booleans broadcastable to (B, T, S).

    Returns:
        (B, T, d_model). Position t depends only on positions up to t, so padding at the end needs
        no mask.
    """

    sublayers = DecoderLayer.sublayers

    def __init__(
        self,
        num_layers: int,
        num_heads: int,
        d_model: int,
        d_ff: int,
        cross_heads: AttentionHeads | dict[str, Any] | None = None,
        **kwargs,
    ):
        self.layer = functools.partial(DecoderLayer, cross_heads=cross_heads)
        super().__init__(num_layers, num_heads, d_model, d_ff, **kwargs)

    def build(self, x_shape, memory_shape):
        for layer in self.layers:
            layer.build(x_shape, memory_shape)
        self.final_norm.build(x_shape)

    def call(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        mask = causal_mask(ops.shape(x)[1])

        def through_layer(x, layer):
            return layer(x, memory, memory_mask=memory_mask, causal=mask), None

        x, _ = self.through(x, through_layer, self.layers)
        return x

    def with_attention(
        self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """`call`, and second what every layer's heads attend to: of the target (B, N, h, T, T), and
        of the memory (B, N, h, T, S).
        """
        mask = causal_mask(ops.shape(x)[1])

        def through_layer(x, layer):
            return layer.with_attention(x, memory, memory_mask=memory_mask, causal=mask)

        x, weights = self.through(x, through_layer, self.layers)
        to_target, to_memory = zip(*weights, strict=True)
        return x, (ops.stack(to_target, axis=1), ops.stack(to_memory, axis=1))

    def memory_cache(self, memory: Tensor) -> list[KeysAndValues]:
        """The keys and values of a memory (B, S, d_model) for every layer, projected once a
        sentence: see `MultiHeadAttention.keys_and_values`.
        """
        return [layer.cross_attention.keys_and_values(memory, memory) for layer in self.layers]

    def stepper(self) -> DecoderStepper:
        """The stack for one position at a time, with the weights as they are now."""
        return DecoderStepper(self)

    def compute_output_shape(self, x_shape, memory_shape):
        return x_shape
