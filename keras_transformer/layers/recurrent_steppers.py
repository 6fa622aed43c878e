"""The decoder of LSTM layers for one new position at a time (what the Transformer of Vaswani et al.
2017 dispenses with, section 1).

Its state has a fixed size, however long the target is.
"""

from keras import ops

from keras_transformer.layers.lstm import LSTMStepper
from keras_transformer.layers.matrix import Matrix
from keras_transformer.layers.tensors import KeysAndValues, State, Tensor


class RecurrentDecoderStepper:
    """A `RecurrentDecoder` for one new position of each of K hypotheses a sentence.

    Args:
        decoder: a built `RecurrentDecoder`.

    Call arguments:
        x: embedded new tokens, (B, K, d_model).
        state: what `start` or the step before returned.
        memory: what `RecurrentDecoder.memory_cache` returned.
        memory_mask: booleans, (B, 1, S).

    Returns:
        (B, K, d_model); the new state; and how much each hypothesis attends to the memory, float32
        (B, K, S).
    """

    def __init__(self, decoder):
        self._through = decoder.through
        self._layers = [LSTMStepper(layer) for layer in decoder.layers]
        self._look = decoder.attention.memory_stepper()
        self._combination = Matrix([decoder.combination.kernel], decoder.dtype_policy)
        self.growing = [layer.growing for layer in self._layers]

    def start(self, rows: int | Tensor) -> State:
        """The state before the first position, of B K rows."""
        return [layer.start(rows) for layer in self._layers]

    def __call__(
        self, x: Tensor, state: State, memory: KeysAndValues, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, State, Tensor]:
        def combine(x):
            [y] = self._combination(x)
            return ops.tanh(y)

        rows, state, weights = self._through(
            ops.reshape(x, (-1, x.shape[-1])),
            lambda n, x: self._layers[n](x, state[n]),
            lambda x: self._look(x, memory, memory_mask),
            combine,
        )
        return ops.reshape(rows, ops.shape(x)), state, ops.cast(weights[:, 0], "float32")
