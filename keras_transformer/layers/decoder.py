"""The decoder: N layers of masked self-attention, attention to the memory, and feed-forward
(Vaswani et al. 2017, section 3.1).

`call` sees a whole target and trains; a `stepper` sees one token a hypothesis, with what came
before in a cache, and decodes. Both give the same activations.
"""

import keras
from keras import ops

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.encoder import Encoder, EncoderLayer
from keras_transformer.layers.masks import causal_mask
from keras_transformer.layers.residual import PostNorm
from keras_transformer.layers.stepping import DecoderStepper


@keras.saving.register_keras_serializable("keras_transformer")
class DecoderLayer(EncoderLayer):
    """An `EncoderLayer` with a third sublayer in its middle: "multi-head attention over the output
    of the encoder stack".

        x = PostNorm(x, MultiHead(x, x, x))            masked, so that no position sees a later one
        x = PostNorm(x, MultiHead(x, memory, memory))
        x = PostNorm(x, FFN(x))

    Args: as in `EncoderLayer`.

    Call arguments:
        x: (B, T, d_model).
        memory: the encoder's output, (B, S, d_model).
        attention_mask: booleans broadcastable to (B, T, T).
        memory_mask: booleans broadcastable to (B, T, S).

    Returns:
        (B, T, d_model).
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
        super().__init__(
            num_heads, d_model, d_ff, d_k, d_v, dropout, activation, output_initializer, **kwargs
        )
        policy = self.dtype_policy
        self.cross_attention = MultiHeadAttention(
            num_heads, d_model, d_k, d_v, output_initializer, dtype=policy, name="cross_attention"
        )
        self.cross_attention_norm = PostNorm(dropout, dtype=policy, name="cross_attention_norm")

    def build(self, x_shape, memory_shape):
        super().build(x_shape)
        self.cross_attention.build(x_shape, memory_shape, memory_shape)
        self.cross_attention_norm.build(x_shape, x_shape)

    def call(self, x, memory, attention_mask=None, memory_mask=None):
        x = self.self_attention_norm(x, self.self_attention(x, x, x, attention_mask=attention_mask))
        x = self.cross_attention_norm(
            x, self.cross_attention(x, memory, memory, attention_mask=memory_mask)
        )
        return self.feed_forward_norm(x, self.feed_forward(x))

    def attentive(self, x, memory, attention_mask=None, memory_mask=None):
        """`call`, and what the heads attend to: the target (B, h, T, T) second, the memory (B, h,
        T, S) third.
        """
        back = self.self_attention
        across = self.cross_attention
        attended, to_target = back.attentive(x, *back.keys_and_values(x, x), attention_mask)
        x = self.self_attention_norm(x, attended)
        attended, to_memory = across.attentive(
            x, *across.keys_and_values(memory, memory), memory_mask
        )
        x = self.cross_attention_norm(x, attended)
        return self.feed_forward_norm(x, self.feed_forward(x)), to_target, to_memory

    def compute_output_shape(self, x_shape, memory_shape):
        return x_shape


@keras.saving.register_keras_serializable("keras_transformer")
class Decoder(Encoder):
    """A stack of N `DecoderLayer`s.

    Args:
        num_layers: N.
        num_heads, d_model, d_ff, d_k, d_v, dropout, activation: as in `EncoderLayer`.

    Call arguments:
        x: embedded target, shifted right, (B, T, d_model).
        memory: the encoder's output, (B, S, d_model).
        memory_mask: booleans broadcastable to (B, T, S).

    Returns:
        (B, T, d_model); position t depends on positions up to t alone, so padding at the end needs
        no mask.
    """

    layer = DecoderLayer
    sublayers = 3

    def build(self, x_shape, memory_shape):
        for layer in self.layers:
            layer.build(x_shape, memory_shape)

    def call(self, x, memory, memory_mask=None):
        mask = causal_mask(ops.shape(x)[1])
        for layer in self.layers:
            x = layer(x, memory, attention_mask=mask, memory_mask=memory_mask)
        return x

    def memory_cache(self, memory):
        """The memory's keys and values for every layer, projected once a sentence."""
        return [layer.cross_attention.keys_and_values(memory, memory) for layer in self.layers]

    def empty_past(self, hypotheses):
        """The past before the first token.

        Args:
            hypotheses: B K, how many hypotheses will be extended.

        Returns:
            For every layer (keys, values), (B K, h, 0, d_k) and (B K, h, 0, d_v).
        """
        attention = self.layers[0].self_attention
        widths = (attention.d_k, attention.d_v)
        return [
            tuple(
                ops.zeros((hypotheses, attention.num_heads, 0, width), dtype=self.compute_dtype)
                for width in widths
            )
            for _ in self.layers
        ]

    def stepper(self):
        """One token further, as often as it is called: a `DecoderStepper` of the weights as they
        are now.
        """
        return DecoderStepper(self)

    def attentive(self, x, memory, memory_mask=None):
        """`call`, and what every layer's heads attend to: the target (B, N, h, T, T) second, the
        memory (B, N, h, T, S) third.
        """
        mask = causal_mask(ops.shape(x)[1])
        weights = []
        for layer in self.layers:
            x, *attended = layer.attentive(x, memory, mask, memory_mask)
            weights.append(attended)
        to_target, to_memory = zip(*weights, strict=True)
        return x, ops.stack(to_target, axis=1), ops.stack(to_memory, axis=1)

    def compute_output_shape(self, x_shape, memory_shape):
        return x_shape
