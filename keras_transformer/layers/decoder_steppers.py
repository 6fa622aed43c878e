"""The decoder (Vaswani et al. 2017, section 3.1) for one new position at a time.

The order of its sublayers and layers is the decoder's own: `DecoderLayer.through` and
`Decoder.through`.
"""

from keras import ops

from keras_transformer.layers.tensors import State, Tensor


class DecoderLayerStepper:
    """A `DecoderLayer` for one new position of each row.

    Its state is a pair: that of the self-attention's stepper and that of the feed-forward
    network's.

    Args:
        layer: a built `DecoderLayer`.

    Call arguments: as in `DecoderStepper`, for x (rows, d_model) and one layer's memory.

    Returns:
        (rows, d_model); and second the new state and the weights of the attention to the memory,
        (B, h, K, S).
    """

    def __init__(self, layer):
        self._through = layer.through
        self._attend = layer.self_attention.stepper()
        self._look = layer.cross_attention.memory_stepper()
        self._feed = layer.feed_forward.stepper()
        self.growing = (self._attend.growing, self._feed.growing)

    def start(self, rows: int | Tensor) -> State:
        """The state before the first position."""
        return self._attend.start(rows), self._feed.start(rows)

    def __call__(
        self, x: Tensor, state: State, memory: tuple[Tensor, Tensor], memory_mask: Tensor | None
    ) -> tuple[Tensor, tuple[State, Tensor]]:
        x, [attended, weights, fed] = self._through(
            x,
            lambda x: self._attend(x, state[0]),
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
        memory: what `Decoder.memory_cache` returned.
        memory_mask: booleans, (B, 1, S).

    Returns:
        (B, K, d_model); the new state; and how much each hypothesis attends to the memory, the mean
        of the last layer's heads, float32 (B, K, S).
    """

    def __init__(self, decoder):
        self._through = decoder.through
        self._layers = [layer.stepper() for layer in decoder.layers]
        self.growing = [layer.growing for layer in self._layers]

    def start(self, rows: int | Tensor) -> State:
        """The state before the first position, of B K rows."""
        return [layer.start(rows) for layer in self._layers]

    def __call__(
        self, x: Tensor, state: State, memory: list, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor]:
        def through_layer(x, layer, state, memory):
            return layer(x, state, memory, memory_mask)

        rows = ops.reshape(x, (-1, x.shape[-1]))
        rows, by_products = self._through(rows, through_layer, self._layers, state, memory)
        state, weights = zip(*by_products, strict=True)
        attention = ops.mean(ops.cast(weights[-1], "float32"), axis=1)
        return ops.reshape(rows, ops.shape(x)), list(state), attention
