"""The decoder: N layers of masked self-attention, attention to the memory, and feed-forward
(Vaswani et al. 2017, section 3.1). Without a memory it is the stack of a decoder-only model (Liu et
al. 2018, "Generating Wikipedia by Summarizing Long Sequences", section 4.2.3).

`call` processes a whole target (training); a stepper adds one token per hypothesis from a cache
(decoding). Both give the same activations.
"""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers.encoder import Encoder, EncoderLayer
from keras_transformer.layers.prototypes import description
from keras_transformer.layers.scaled_dot_product import AttentionHeads
from keras_transformer.layers.tensors import KeysAndValues, State, Sublayer, Tensor, causal_mask


@keras.saving.register_keras_serializable("keras_transformer")
class DecoderLayer(EncoderLayer):
    """An `EncoderLayer` with a third sublayer in its middle: "multi-head attention over the output
    of the encoder stack".

        x = PostNorm(x, MultiHead(x, x, x))            masked, so that no position sees a later one
        x = PostNorm(x, MultiHead(x, memory, memory))
        x = PostNorm(x, FFN(x))

    Args: as in `EncoderLayer`, after `d_ff` by name, and
        cross_heads: `AttentionHeads` of the attention to the memory, as in `MultiHeadAttention`.
        has_memory: whether there is a memory to attend to. Without one, the second sublayer is left
            out.

    Call arguments:
        x: (B, T, d_model).
        memory: the encoder's output, (B, S, d_model); None without a memory.
        attention_mask: booleans broadcastable to (B, T, T).
        memory_mask: booleans broadcastable to (B, T, S).
        causal: `causal_mask(T)`, as in `MultiHeadAttention`; None: x attends to later ones too.

    Returns:
        (B, T, d_model).
    """

    def __init__(
        self,
        num_heads: int,
        d_model: int,
        d_ff: int,
        cross_heads: AttentionHeads | dict[str, Any] | None = None,
        has_memory: bool = True,
        **kwargs,
    ):
        super().__init__(num_heads, d_model, d_ff, **kwargs)
        if cross_heads is not None and not has_memory:
            raise ValueError("`cross_heads` attend to a memory. Received: has_memory=False.")
        self.has_memory = has_memory
        if has_memory:
            self.cross_attention = self._attention(heads=cross_heads, name="cross_attention")
            self.cross_attention_norm = self._norm(name="cross_attention_norm")

    @classmethod
    def sublayers_of(cls, has_memory: bool = True, **variants) -> int:
        return 3 if has_memory else 2

    def build(self, x_shape, memory_shape=None):
        # Check before building anything: Keras may build again, and would report that instead.
        self._check(memory_shape)
        super().build(x_shape)
        if self.has_memory:
            self.cross_attention.build(x_shape, memory_shape, memory_shape)
            self.cross_attention_norm.build(x_shape)

    def _check(self, memory):
        if self.has_memory != (memory is not None):
            remedy = "Pass the encoder's output" if self.has_memory else "Leave `memory` out"
            raise ValueError(
                "Without `memory`, a decoder's layer needs has_memory=False, and with it True. "
                f"Received: has_memory={self.has_memory}. {remedy}, or change has_memory."
            )

    def through(
        self, x: Tensor, attend: Sublayer, look: Sublayer, feed: Sublayer
    ) -> tuple[Tensor, list[Any]]:
        """Apply the sublayers in order; `look` attends to the memory, if there is one."""
        x, attended = self.self_attention_norm(x, sublayer=attend)
        looked = None
        if self.has_memory:
            x, looked = self.cross_attention_norm(x, sublayer=look)
        x, fed = self.feed_forward_norm(x, sublayer=feed)
        return x, [attended, looked, fed]

    def call(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        attention_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> Tensor:
        self._check(memory)
        masks = {"attention_mask": attention_mask, "causal": causal}
        return self.through(
            x,
            lambda x: (self.self_attention(x, x, x, **masks), None),
            lambda x: (self.cross_attention(x, memory, memory, attention_mask=memory_mask), None),
            self._feed,
        )[0]

    def with_attention(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        attention_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor | None]]:
        """Return `call`'s result, and the weights: (B, h, T, T), and (B, h, T, S) or None."""
        self._check(memory)

        def attend(x):
            return self.self_attention.with_attention(x, x, x, attention_mask, causal)

        def look(x):
            return self.cross_attention.with_attention(x, memory, memory, memory_mask)

        x, [to_target, to_memory, _] = self.through(x, attend, look, self._feed)
        return x, (to_target, to_memory)

    def stepper(self) -> "DecoderLayerStepper":
        return DecoderLayerStepper(self)

    def get_config(self):
        config = {**super().get_config(), "has_memory": self.has_memory}
        if self.has_memory:
            config["cross_heads"] = description(self.cross_attention.heads)
        return config


@keras.saving.register_keras_serializable("keras_transformer")
class Decoder(Encoder):
    """A stack of N `DecoderLayer`s, followed by the `end_of_stack` of the norm's placement.

    Args: as in `Encoder`, with the arguments of `DecoderLayer`.

    Call arguments:
        x: embedded target, shifted right, (B, T, d_model).
        memory: the encoder's output, (B, S, d_model); None without a memory.
        memory_mask: booleans broadcastable to (B, T, S).

    Returns:
        (B, T, d_model). Position t depends only on positions up to t, so padding at the end needs
        no mask.
    """

    layer = DecoderLayer

    def build(self, x_shape, memory_shape=None):
        super().build(x_shape, memory_shape)

    def call(
        self, x: Tensor, memory: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        mask = causal_mask(ops.shape(x)[1])

        def through_layer(x, layer):
            return layer(x, memory, memory_mask=memory_mask, causal=mask), None

        return self.through(x, through_layer, self.layers)[0]

    def with_attention(
        self, x: Tensor, memory: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor | None]]:
        """Return the result of `call`, and every layer's attention weights: over the target, (B, N,
        h, T, T), and over the memory, (B, N, h, T, S) or None.
        """
        mask = causal_mask(ops.shape(x)[1])

        def through_layer(x, layer):
            return layer.with_attention(x, memory, memory_mask=memory_mask, causal=mask)

        x, weights = self.through(x, through_layer, self.layers)
        to_target, to_memory = zip(*weights, strict=True)
        of_memory = None if memory is None else ops.stack(to_memory, axis=1)
        return x, (ops.stack(to_target, axis=1), of_memory)

    def memory_cache(self, memory: Tensor) -> list[KeysAndValues]:
        """Project the keys and values of a memory, (B, S, d_model), for every layer, once per
        sentence: see `MultiHeadAttention.keys_and_values`.
        """
        return [layer.cross_attention.keys_and_values(memory, memory) for layer in self.layers]

    def stepper(self) -> "DecoderStepper":
        return DecoderStepper(self)


class DecoderLayerStepper:
    """A `DecoderLayer` for one new position of each row, called as `DecoderStepper` with x (rows,
    d_model) and one layer's memory.

    Its state is a pair: that of the self-attention's stepper and that of the feed-forward
    network's. With the new state it returns the weights of the attention to the memory, (B, h, K,
    S), or None.
    """

    def __init__(self, layer: DecoderLayer):
        self._through = layer.through
        self._attend = layer.self_attention.stepper()
        self._look = layer.cross_attention.memory_stepper() if layer.has_memory else None
        self._feed = layer.feed_forward.stepper()
        self.growing = (self._attend.growing, self._feed.growing)

    def start(self, rows: int | Tensor) -> State:
        return self._attend.start(rows), self._feed.start(rows)

    def __call__(
        self,
        x: Tensor,
        state: State,
        memory: KeysAndValues | None,
        memory_mask: Tensor | None,
        block_mask: Tensor | None = None,
    ) -> tuple[Tensor, tuple[State, Tensor | None]]:
        def attend(x):
            if block_mask is None:
                return self._attend(x, state[0])
            return self._attend.block(x, state[0], block_mask)

        x, [attended, weights, fed] = self._through(
            x,
            attend,
            lambda x: self._look(x, memory, memory_mask),
            lambda x: self._feed(x, state[1]),
        )
        return x, ((attended, fed), weights)


class DecoderStepper:
    """A `Decoder` for one new position of each of K hypotheses a sentence.

    `growing` has the structure of the state. It names the axis along which each tensor of the state
    grows by one at every step, or -1 for a tensor of fixed size.

    Args:
        decoder: a built `Decoder`.

    Call arguments:
        x: embedded new tokens, (B, K, d_model).
        state: what `start` or the step before returned.
        memory: what `Decoder.memory_cache` returned; None without a memory.
        memory_mask: booleans, (B, 1, S).
        block_mask: if the K are new positions of one hypothesis, and the state has t positions in B
            rows: what they may attend to, booleans (B, K, t + K), or (K, t + K) if positions of the
            state are never moved. None: they are K hypotheses.

    Returns:
        (B, K, d_model); the new state; and how much each hypothesis attends to the memory, the mean
        of the last layer's heads, float32 (B, K, S), or None without a memory.
    """

    def __init__(self, decoder: Decoder):
        self._through = decoder.through
        self._layers = [layer.stepper() for layer in decoder.layers]
        self.growing = [layer.growing for layer in self._layers]

    def start(self, rows: int | Tensor) -> State:
        """Return the state before the first position, of B K rows."""
        return [layer.start(rows) for layer in self._layers]

    def __call__(
        self,
        x: Tensor,
        state: State,
        memory: list[KeysAndValues] | None = None,
        memory_mask: Tensor | None = None,
        block_mask: Tensor | None = None,
    ) -> tuple[Tensor, State, Tensor | None]:
        def through_layer(x, layer, state, memory):
            return layer(x, state, memory, memory_mask, block_mask)

        rows = ops.reshape(x, (-1, x.shape[-1]))
        memories = [None] * len(self._layers) if memory is None else memory
        rows, by_products = self._through(rows, through_layer, self._layers, state, memories)
        state, weights = zip(*by_products, strict=True)
        last = weights[-1]
        attention = None if last is None else ops.mean(ops.cast(last, "float32"), axis=1)
        return ops.reshape(rows, ops.shape(x)), list(state), attention
