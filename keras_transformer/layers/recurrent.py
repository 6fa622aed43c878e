"""The LSTM encoder and decoder with additive attention that the Transformer dispenses with
(Vaswani et al. 2017, sections 1 and 3.2.1).

`call` processes a whole target (training); a stepper adds one token per hypothesis (decoding), from
a state of fixed size. Both give the same activations.
"""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_transformer.layers.attention import MultiHeadAttention
from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.linear_maps import Dense, Matrix, plus_bias
from keras_transformer.layers.prototypes import KeepsShape, check_even, check_sizes
from keras_transformer.layers.scaled_dot_product import Additive, SoftmaxHeads
from keras_transformer.layers.tensors import KeysAndValues, Masks, State, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class OrthogonalOfAnyDtype(keras.initializers.Orthogonal):
    """Keras' initializer of recurrent matrices, computed in float32: backends cannot decompose
    bfloat16 matrices.
    """

    def __call__(self, shape, dtype=None):
        return ops.cast(super().__call__(shape, "float32"), dtype or "float32")


class LSTMCell(keras.layers.LSTMCell):
    """Keras' cell without its dropout, its bias added as in `linear_maps`.

    i, f, g, o = split(x W + h U + b)
    c = sigmoid(f) * c + sigmoid(i) * tanh(g)
    h = sigmoid(o) * tanh(c)
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
    """Make a layer (B, n, width) -> (B, n, units), with Keras' own activations. With `backward` it
    reads the last position first, and its outputs are in the order of reading.

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
    # Keras' layer makes its own cell. `keras.layers.RNN` accepts another, but does not use cuDNN.
    layer.cell.__class__ = LSTMCell
    return layer


class LSTMStepper:
    """An `lstm` for one new position of each row, (rows, width). The state is h and c."""

    growing = (-1, -1)

    def __init__(self, layer):
        cell = layer.cell
        self._units = layer.units
        self._dtype = layer.compute_dtype
        kernel = ops.concatenate([cell.kernel, cell.recurrent_kernel], axis=0)
        self._gates = Matrix([kernel], layer.dtype_policy, [cell.bias])

    def start(self, rows: int | Tensor) -> State:
        return tuple(ops.zeros((rows, self._units), dtype=self._dtype) for _ in range(2))

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        h, c = state
        [gates] = self._gates(ops.concatenate([x, h], axis=-1))
        h, c = _next_state(gates, c)
        return h, (h, c)


@keras.saving.register_keras_serializable("keras_transformer")
class RecurrentEncoder(KeepsShape):
    """N layers. Half of each layer reads the sentence forward, the other half backward.

        x = x + Dropout([LSTM(x), reversed(LSTM(reversed(x)))])

    Padding is skipped: the backward half begins at the last token of each sentence. d_model must be
    even. The state that a layer carries from position to position has no dropout. Called as
    `Encoder` with a mask (B, 1, S). The memory is meaningless at padding.

    References: Bahdanau et al. 2014, section 3.2. Wu et al. 2016, section 3.1 (the residual sum).
        Zaremba et al. 2014, "Recurrent Neural Network Regularization" (where the dropout stands).
    """

    def __init__(self, num_layers: int, d_model: int, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        check_sizes(num_layers=num_layers, d_model=d_model)
        check_even("d_model", d_model, "half of each layer reads forward")
        self.num_layers = num_layers
        self.d_model = d_model
        self.dropout = dropout
        policy = self.dtype_policy
        half = d_model // 2
        self.forward_layers = [lstm(half, policy, f"forward_{n}") for n in range(num_layers)]
        self.backward_layers = [
            lstm(half, policy, f"backward_{n}", backward=True) for n in range(num_layers)
        ]
        self.output_dropouts = [
            Dropout(dropout, dtype=policy, name=f"dropout_{n}") for n in range(num_layers)
        ]

    def build(self, x_shape):
        for layer in (*self.forward_layers, *self.backward_layers):
            layer.build(x_shape)

    def call(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        mask = Masks(attention_mask).checked(x, x, x).of_keys()
        tokens = None if mask is None else mask[:, 0]
        layers = zip(self.forward_layers, self.backward_layers, self.output_dropouts, strict=True)
        for forward, backward, dropout in layers:
            ahead = forward(x, mask=tokens)
            # The backward half's outputs are in the order of reading.
            behind = ops.flip(backward(x, mask=tokens), axis=1)
            x = x + dropout(ops.concatenate([ahead, behind], axis=-1))
        return x


@keras.saving.register_keras_serializable("keras_transformer")
class RecurrentDecoder(KeepsShape):
    """N LSTM layers. The output of the first attends to the source, for all later layers too.

        x = x + Dropout(LSTM_1(x))
        c = Attention(x, memory, memory)          additive, of one head
        x = x + Dropout(LSTM_n([x, c]))           n = 2 to N
        y = tanh([x, c] W)

    For N = 1 this is the global attention of Luong et al. 2015, section 3.1, with the scores of
    Bahdanau et al. 2014 and without input feeding: no LSTM layer reads the attention of the step
    before, so each layer computes the whole target in one call. The first layer attends for those
    above it, as in Wu et al. 2016, section 3. The initial states are zeros: the decoder knows the
    source by attention alone.

    Called as `Decoder`; all widths are d_model.
    """

    def __init__(self, num_layers: int, d_model: int, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        check_sizes(num_layers=num_layers, d_model=d_model)
        self.num_layers = num_layers
        self.d_model = d_model
        self.dropout = dropout
        policy = self.dtype_policy
        self.layers = [lstm(d_model, policy, f"lstm_{n}") for n in range(num_layers)]
        self.output_dropouts = [
            Dropout(dropout, dtype=policy, name=f"dropout_{n}") for n in range(num_layers)
        ]
        heads = SoftmaxHeads(similarity=Additive())
        self.attention = MultiHeadAttention(1, d_model, heads=heads, dtype=policy, name="attention")
        options = {"use_bias": False, "dtype": policy, "name": "combination"}
        self.combination = Dense(d_model, "tanh", **options)

    def build(self, x_shape, memory_shape):
        with_context = (*x_shape[:-1], 2 * self.d_model)
        self.layers[0].build(x_shape)
        for layer in self.layers[1:]:
            layer.build(with_context)
        self.attention.build(x_shape, memory_shape, memory_shape)
        self.combination.build(with_context)

    def through(
        self, x: Tensor, recur: Callable, look: Callable, combine: Callable
    ) -> tuple[Tensor, list[Any], Tensor]:
        """Apply the layers in order, for whole sequences and single positions alike.

        `recur(n, x)` returns the output of LSTM layer n, for x (..., width), and its state;
        `look(x)` returns the attention's output and its weights; `combine` maps (..., 2 d_model) to
        (..., d_model). Returns (..., d_model), the layers' states, and the weights.
        """
        y, state = recur(0, x)
        states = [state]
        x = x + self.output_dropouts[0](y)
        context, weights = look(x)
        for n in range(1, self.num_layers):
            y, state = recur(n, ops.concatenate([x, context], axis=-1))
            states.append(state)
            x = x + self.output_dropouts[n](y)
        return combine(ops.concatenate([x, context], axis=-1)), states, weights

    def call(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        return self.with_attention(x, memory, memory_mask)[0]

    def with_attention(
        self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the result of `call`, and the attention weights, (B, 1, 1, T, S)."""

        def recur(n, x):
            return self.layers[n](x), None

        def look(x):
            return self.attention.with_attention(x, memory, memory, memory_mask)

        y, _, weights = self.through(x, recur, look, self.combination)
        return y, weights[:, None]

    def memory_cache(self, memory: Tensor) -> KeysAndValues:
        """Project the keys and values of a memory, (B, S, d_model), once per sentence."""
        return self.attention.keys_and_values(memory, memory)

    def stepper(self) -> "RecurrentDecoderStepper":
        return RecurrentDecoderStepper(self)


class RecurrentDecoderStepper:
    """A `RecurrentDecoder` for one new position of each hypothesis, called as `DecoderStepper`."""

    def __init__(self, decoder):
        self._through = decoder.through
        self._layers = [LSTMStepper(layer) for layer in decoder.layers]
        self._look = decoder.attention.memory_stepper()
        self._combination = Matrix([decoder.combination.kernel], decoder.dtype_policy)
        self.growing = [layer.growing for layer in self._layers]

    def start(self, rows: int | Tensor) -> State:
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
