"""Keras' linear maps and convolutions, with biases that bfloat16 can train (Vaswani et al. 2017,
section 3.3, eq. 2).

TensorFlow's operation that adds a bias sums its gradient over all positions in the dtype of the
gradient, on a processor. With the 8 bits of precision of bfloat16, such a sum stops growing at 256
times what is added to it. The gradient of a plain sum is summed in float32.
"""

import keras
from keras import ops

from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense`: activation(x W + b), the bias added as said above.

    Call arguments:
        x: (..., width).

    Returns:
        (..., units).
    """

    def call(self, x: Tensor) -> Tensor:
        y = ops.matmul(x, self.kernel)
        y = y if self.bias is None else plus_bias(y, self.bias)
        return y if self.activation is None else self.activation(y)


@keras.saving.register_keras_serializable("keras_transformer")
class Conv1D(keras.layers.Conv1D):
    """`keras.layers.Conv1D` along sequences, the bias added as said above.

    Call arguments:
        x: (B, n, width).

    Returns:
        (B, n, filters) with stride 1 and padding "same" or "causal".
    """

    def call(self, x: Tensor) -> Tensor:
        padding = self.padding
        if padding == "causal":
            before = self.dilation_rate[0] * (self.kernel_size[0] - 1)
            x = ops.pad(x, ((0, 0), (before, 0), (0, 0)))
            padding = "valid"
        y = ops.conv(x, self.kernel, list(self.strides), padding, dilation_rate=self.dilation_rate)
        y = plus_bias(y, self.bias) if self.use_bias else y
        return y if self.activation is None else self.activation(y)


def plus_bias(y: Tensor, bias: Tensor) -> Tensor:
    """`y + bias`, whose gradient is summed in float32.

    Args:
        y: (..., width).
        bias: (width,), of any dtype.
    """
    return y + ops.cast(bias, y.dtype)
