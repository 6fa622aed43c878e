"""Gated convolutions and the encoder made of them (Gehring et al. 2017, "Convolutional Sequence to
Sequence Learning", sections 3.2, 3.4 and 3.5), which table 2 of Vaswani et al. 2017 compares the
Transformer with.
"""

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.linear_maps import Matrix, plus_bias
from keras_transformer.layers.prototypes import KeepsShape, Layer, check_sizes
from keras_transformer.layers.tensors import Masks, State, Tensor

# The sum of two numbers, times this, has the variance of one of them.
HALVED = 0.5**0.5


@keras.saving.register_keras_serializable("keras_transformer")
class Conv1D(keras.layers.Conv1D):
    """`keras.layers.Conv1D` as a `ConvolutionBlock` needs it: along sequences, (B, n, width) -> (B,
    n, filters), with the padding "same" or "causal". The bias is added as in `linear_maps`.

    The k positions that each output reads are concatenated and multiplied by the kernel, (k width,
    filters). TensorFlow's convolution sums the filters' gradient in bfloat16 on a processor without
    bfloat16 products; the gradient of a matrix product is summed in float32 everywhere.
    """

    def call(self, x: Tensor) -> Tensor:
        [size] = self.kernel_size
        before = {"same": (size - 1) // 2, "causal": size - 1}[self.padding]
        padded = ops.pad(x, ((0, 0), (before, size - 1 - before), (0, 0)))
        length = ops.shape(x)[1]
        windows = ops.concatenate([padded[:, at : at + length] for at in range(size)], axis=-1)
        y = ops.matmul(windows, ops.reshape(self.kernel, (-1, self.filters)))
        return plus_bias(y, self.bias)


def gated(x: Tensor) -> Tensor:
    """GLU([a, b]) = a * sigmoid(b): (..., 2 d) -> (..., d)."""
    a, b = ops.split(x, 2, axis=-1)
    return a * ops.sigmoid(b)


@keras.saving.register_keras_serializable("keras_transformer")
class ConvolutionBlock(KeepsShape):
    """A convolution of 2 d_model filters, a gated linear unit and a residual sum.

        (GLU(Conv(Dropout(x))) + x) sqrt(0.5)

    `padding` is "same" in an encoder, which sees as far ahead as behind, and "causal" in a decoder.
    `tokens`, (B, n, 1), are 1 at tokens of x (B, n, d_model) and 0 at padding; None if there is no
    padding, or none that a token reads.

    Reference: Dauphin et al. 2016, "Language Modeling with Gated Convolutional Networks".
    """

    def __init__(
        self, d_model: int, kernel_size: int, dropout: float = 0.0, padding: str = "same", **kwargs
    ):
        super().__init__(**kwargs)
        check_sizes(d_model=d_model, kernel_size=kernel_size)
        if padding not in ("same", "causal"):
            raise ValueError(
                f'`padding` must be "same" or "causal". Received: padding={padding!r}.'
            )
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
        inputs = self.input_dropout(x)
        if tokens is not None:
            inputs = inputs * tokens
        return (gated(self.convolution(inputs)) + x) * HALVED

    def stepper(self) -> "ConvolutionStepper":
        return ConvolutionStepper(self)


class ConvolutionStepper:
    """A causal `ConvolutionBlock` for one new position of each row, (rows, d_model).

    The state is the k - 1 positions before it, (rows, k - 1, d_model), with zeros before the first
    position. Its size is fixed.
    """

    growing = -1

    def __init__(self, block: ConvolutionBlock):
        convolution = block.convolution
        self._before = (block.kernel_size - 1, block.d_model)
        self._width = block.kernel_size * block.d_model
        self._dtype = block.compute_dtype
        kernel = ops.reshape(convolution.kernel, (self._width, -1))
        self._map = Matrix([kernel], block.dtype_policy, [convolution.bias])

    def start(self, rows: int | Tensor) -> State:
        return ops.zeros((rows, *self._before), dtype=self._dtype)

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        window = ops.concatenate([state, x[:, None]], axis=1)
        [y] = self._map(ops.reshape(window, (-1, self._width)))
        return (gated(y) + x) * HALVED, window[:, 1:]


@keras.saving.register_keras_serializable("keras_transformer")
class ConvolutionalEncoder(Layer):
    """N blocks. A decoder attends to their output z.

        memory = [z, (z + e) sqrt(0.5)]           keys and values; e is the embedded source

    A decoder of N blocks has N attentions, so each passes 1/N of its gradient to z. The embeddings
    e get all of it.

    Call arguments:
        x: embedded source e, (B, S, d_model).
        attention_mask: booleans (B, 1, S), True at tokens.

    Returns:
        The memory, (B, S, 2 d_model).
    """

    padding = "same"

    def __init__(
        self, num_layers: int, d_model: int, kernel_size: int = 3, dropout: float = 0.0, **kwargs
    ):
        super().__init__(**kwargs)
        check_sizes(num_layers=num_layers)
        self.num_layers = num_layers
        self.d_model = d_model
        self.kernel_size = kernel_size
        self.dropout = dropout
        sizes = (d_model, kernel_size, dropout, self.padding)
        self.blocks = [
            ConvolutionBlock(*sizes, dtype=self.dtype_policy, name=f"block_{n}")
            for n in range(num_layers)
        ]

    def build(self, x_shape):
        for block in self.blocks:
            block.build(x_shape)

    def call(self, x: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        tokens = None
        if (mask := Masks(attention_mask).checked(x, x, x).of_keys()) is not None:
            tokens = ops.cast(ops.transpose(mask, (0, 2, 1)), x.dtype)
        z = x
        for block in self.blocks:
            z = block(z, tokens=tokens)
        z = _with_share_of_gradient(z, 1 / self.num_layers)
        return ops.concatenate([z, (z + x) * HALVED], axis=-1)

    def compute_output_shape(self, x_shape):
        return (*x_shape[:-1], 2 * self.d_model)


def _with_share_of_gradient(x, share):
    """Pass x on, and multiply its gradient by `share`."""
    fixed = ops.stop_gradient(x)
    return fixed + (x - fixed) * share
