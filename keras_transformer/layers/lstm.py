"""LSTM layers of Keras, and one of them for one new position at a time (what the Transformer of
Vaswani et al. 2017 dispenses with, section 1).
"""

import keras
from keras import ops

from keras_transformer.layers.linear_maps import plus_bias
from keras_transformer.layers.matrix import Matrix
from keras_transformer.layers.tensors import State, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class OrthogonalOfAnyDtype(keras.initializers.Orthogonal):
    """Keras' own start of the matrices between positions, drawn in float32.

    Backends have no decomposition of bfloat16 matrices.
    """

    def __call__(self, shape, dtype=None):
        return ops.cast(super().__call__(shape, "float32"), dtype or "float32")


class LSTMCell(keras.layers.LSTMCell):
    """Keras' cell without its dropout, the bias added as in `linear_maps`.

        i, f, g, o = split(x W + h U + b)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)

    Call arguments:
        x: one position, (B, width).
        states: h and c of the position before, (B, units) each.

    Returns:
        h, (B, units), and a list of the new states.
    """

    def call(self, x: Tensor, states: list[Tensor], training: bool = False):
        h, c = states
        gates = ops.matmul(x, self.kernel) + ops.matmul(h, self.recurrent_kernel)
        h, c = _next_state(plus_bias(gates, self.bias), c)
        return h, [h, c]


def _next_state(gates, c):
    i, f, g, o = ops.split(gates, 4, axis=-1)
    c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def lstm(
    units: int, policy: keras.DTypePolicy, name: str, backward: bool = False
) -> keras.layers.LSTM:
    """A layer (B, n, width) -> (B, n, units), with Keras' own activations.

    Args:
        units: its width.
        policy: a Keras dtype policy.
        name: the layer's.
        backward: read the last position first. What comes out is in the order of reading.

    Reference: Hochreiter and Schmidhuber 1997, "Long Short-Term Memory".
    """
    layer = keras.layers.LSTM(
        units,
        return_sequences=True,
        go_backwards=backward,
        recurrent_initializer=OrthogonalOfAnyDtype(),
        dtype=policy,
        name=name,
    )
    # Keras' layer makes its cell itself. `keras.layers.RNN` takes another one, but not cuDNN.
    layer.cell.__class__ = LSTMCell
    return layer


class LSTMStepper:
    """A Keras LSTM layer for one new position of each row, by the formula of `LSTMCell`.

    The state is h and c, (rows, units) each.

    Args:
        layer: what `lstm` made, built.

    Call arguments:
        x: the newest position, (rows, width).
        state: what `start` or the step before returned.

    Returns:
        h, (rows, units), and the new state.
    """

    growing = (-1, -1)

    def __init__(self, layer):
        cell = layer.cell
        self._units = layer.units
        self._dtype = layer.compute_dtype
        kernel = ops.concatenate([cell.kernel, cell.recurrent_kernel], axis=0)
        self._gates = Matrix([kernel], layer.dtype_policy)
        self._bias = ops.cast(cell.bias, self._dtype)

    def start(self, rows: int | Tensor) -> State:
        """The state before the first position: zeros."""
        h, c = (ops.zeros((rows, self._units), dtype=self._dtype) for _ in range(2))
        return h, c

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        h, c = state
        [gates] = self._gates(ops.concatenate([x, h], axis=-1))
        h, c = _next_state(gates + self._bias, c)
        return h, (h, c)
