"""A gated convolution with a residual sum (Gehring et al. 2017, sections 3.2, 3.4 and 3.5), which
table 2 of Vaswani et al. 2017 compares attention with.
"""

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.linear_maps import Conv1D
from keras_transformer.layers.matrix import Matrix
from keras_transformer.layers.tensors import State, Tensor

# A sum of two has the variance of one.
HALVED = 0.5**0.5


def gated(x: Tensor) -> Tensor:
    """GLU([a, b]) = a * sigmoid(b): (..., 2 d) -> (..., d)."""
    a, b = ops.split(x, 2, axis=-1)
    return a * ops.sigmoid(b)


@keras.saving.register_keras_serializable("keras_transformer")
class ConvolutionBlock(keras.layers.Layer):
    """A convolution of 2 d_model filters, a gated linear unit and a residual sum.

        (GLU(Conv(Dropout(x))) + x) sqrt(0.5)

    Args:
        d_model: width of input and output.
        kernel_size: k.
        dropout: probability in [0, 1) on the input of the convolution.
        padding: "same" of an encoder, which sees as far ahead as behind, or "causal" of a decoder.

    Call arguments:
        x: (B, n, d_model).
        tokens: 1 at tokens and 0 at padding, (B, n, 1), of the dtype of `x`; None if no position
            sees padding after it.

    Returns:
        (B, n, d_model).

    Reference: Dauphin et al. 2016, "Language Modeling with Gated Convolutional Networks".
    """

    def __init__(
        self,
        d_model: int,
        kernel_size: int,
        dropout: float = 0.0,
        padding: str = "same",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.d_model = d_model
        self.kernel_size = kernel_size
        self.dropout = dropout
        self.padding = padding
        # Gehring et al. 2017, section 3.5: a GLU's output has a quarter of its input's variance,
        # and dropout raises that of its sum.
        deviation = (4 * (1 - dropout) / (kernel_size * d_model)) ** 0.5
        self.input_dropout = Dropout(dropout, dtype=self.dtype_policy, name="input_dropout")
        self.convolution = Conv1D(
            2 * d_model,
            kernel_size,
            padding=padding,
            kernel_initializer=keras.initializers.RandomNormal(stddev=deviation),
            dtype=self.dtype_policy,
            name="convolution",
        )

    def build(self, x_shape):
        self.convolution.build(x_shape)

    def call(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        seen = self.input_dropout(x)
        if tokens is not None:
            seen = seen * tokens
        return (gated(self.convolution(seen)) + x) * HALVED

    def stepper(self) -> "ConvolutionStepper":
        """A causal block one position at a time, with the weights as they are now."""
        return ConvolutionStepper(self)

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        return {
            **super().get_config(),
            "d_model": self.d_model,
            "kernel_size": self.kernel_size,
            "dropout": self.dropout,
            "padding": self.padding,
        }


class ConvolutionStepper:
    """A causal `ConvolutionBlock` for one new position of each row.

    The state is the window of the k - 1 positions before, (rows, k - 1, d_model), of fixed size:
    zeros before the first position.

    Args:
        block: a built `ConvolutionBlock`.

    Call arguments:
        x: the newest position, (rows, d_model).
        state: what `start` or the step before returned.

    Returns:
        (rows, d_model), and the new state.
    """

    growing = -1

    def __init__(self, block: ConvolutionBlock):
        convolution = block.convolution
        self._before = (block.kernel_size - 1, block.d_model)
        self._width = block.kernel_size * block.d_model
        self._dtype = block.compute_dtype
        kernel = ops.reshape(convolution.kernel, (self._width, -1))
        self._kernel = Matrix([kernel], block.dtype_policy)
        self._bias = ops.cast(convolution.bias, self._dtype)

    def start(self, rows: int | Tensor) -> State:
        """The state before the first position."""
        return ops.zeros((rows, *self._before), dtype=self._dtype)

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        window = ops.concatenate([state, x[:, None]], axis=1)
        [y] = self._kernel(ops.reshape(window, (-1, self._width)))
        return (gated(y + self._bias) + x) * HALVED, window[:, 1:]
