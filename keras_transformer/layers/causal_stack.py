"""The stack of a decoder-only model: the decoder's masked self-attention and feed-forward network
without a memory to look at (Vaswani et al. 2017, section 3.1; Liu et al. 2018).

`call` processes whole sequences (training); a stepper adds one token to each (decoding). Both give
the same activations.
"""

import keras
from keras import ops

from keras_transformer.layers.encoder import Encoder
from keras_transformer.layers.encoder_layer import EncoderLayer
from keras_transformer.layers.masks import causal_mask
from keras_transformer.layers.tensors import State, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class CausalLayer(EncoderLayer):
    """An `EncoderLayer` that can go one position at a time.

    Arguments as in `EncoderLayer`; who calls it passes `causal`.
    """

    def stepper(self) -> "CausalLayerStepper":
        """The layer for one position at a time, with the weights as they are now."""
        return CausalLayerStepper(self)


@keras.saving.register_keras_serializable("keras_transformer")
class CausalStack(Encoder):
    """A stack of N `CausalLayer`s, and what the norm's placement puts after the last one.

    Arguments as in `Encoder`.

    Call arguments:
        x: embedded tokens, (B, T, d_model).

    Returns:
        (B, T, d_model). Position t depends only on positions up to t, so padding at the end needs
        no mask.

    References: Liu et al. 2018, "Generating Wikipedia by Summarizing Long Sequences", section
        4.2.3; Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training".
    """

    layer = CausalLayer

    def call(self, x: Tensor) -> Tensor:
        mask = causal_mask(ops.shape(x)[1])
        x, _ = self.through(x, lambda x, layer: (layer(x, causal=mask), None), self.layers)
        return x

    def with_attention(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """`call`, and second what every layer's heads attend to, (B, N, h, T, T)."""
        mask = causal_mask(ops.shape(x)[1])

        def through_layer(x, layer):
            return layer.with_attention(x, causal=mask)

        x, weights = self.through(x, through_layer, self.layers)
        return x, ops.stack(weights, axis=1)

    def stepper(self) -> "CausalStepper":
        """The stack for one position at a time, with the weights as they are now."""
        return CausalStepper(self)


class CausalLayerStepper:
    """A `CausalLayer` for one new position of each row.

    Its state is a pair: that of the self-attention's stepper and that of the feed-forward
    network's.

    Args:
        layer: a built `CausalLayer`.

    Call arguments:
        x: the newest position, (rows, d_model).
        state: what `start` or the step before returned.

    Returns:
        (rows, d_model), and the new state.
    """

    def __init__(self, layer: CausalLayer):
        self._through = layer.through
        self._attend = layer.self_attention.stepper()
        self._feed = layer.feed_forward.stepper()
        self.growing = (self._attend.growing, self._feed.growing)

    def start(self, rows: int | Tensor) -> State:
        """The state before the first position."""
        return self._attend.start(rows), self._feed.start(rows)

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        attended, fed = state
        x, [attended, fed] = self._through(
            x, lambda x: self._attend(x, attended), lambda x: self._feed(x, fed)
        )
        return x, (attended, fed)


class CausalStepper:
    """A `CausalStack` for one new position of each row.

    `growing` has the structure of the state. It names the axis along which each tensor of the state
    grows by one at every step, or -1 for a tensor of fixed size.

    Args:
        stack: a built `CausalStack`.

    Call arguments:
        x: embedded new tokens, (rows, d_model).
        state: what `start` or the step before returned.

    Returns:
        (rows, d_model), and the new state.
    """

    def __init__(self, stack: CausalStack):
        self._through = stack.through
        self._layers = [layer.stepper() for layer in stack.layers]
        self.growing = [layer.growing for layer in self._layers]

    def start(self, rows: int | Tensor) -> State:
        """The state before the first position."""
        return [layer.start(rows) for layer in self._layers]

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        return self._through(x, lambda x, layer, state: layer(x, state), self._layers, state)
