"""Keras' linear maps and convolutions, with biases that bfloat16 can train (Vaswani et al. 2017,
section 3.3, eq. 2).

TensorFlow's operation that adds a bias sums its gradient over all positions in the dtype of the
gradient, on a processor. With the 8 bits of precision of bfloat16, such a sum stops growing at 256
times what is added to it. The gradient of a plain sum is summed in float32.

Its convolution sums the gradient of the filters in bfloat16 as well, on a processor that does not
multiply in it. A matrix product's is summed in float32 everywhere.
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

    It is one product of the kernel, (k width, filters), and the k positions that each output sees,
    side by side. Strides and groups are 1.

    Call arguments:
        x: (B, n, width).

    Returns:
        (B, n, filters) with padding "same" or "causal".

    Raises:
        ValueError: if `strides` or `groups` is not 1.
    """

    def build(self, input_shape):
        if self.strides != (1,) or self.groups != 1:
            raise ValueError(
                "`strides` and `groups` must be 1. Received: "
                f"strides={self.strides}, groups={self.groups}. Use `keras.layers.Conv1D`."
            )
        super().build(input_shape)

    def call(self, x: Tensor) -> Tensor:
        y = ops.matmul(self._windows(x), ops.reshape(self.kernel, (-1, self.filters)))
        y = plus_bias(y, self.bias) if self.use_bias else y
        return y if self.activation is None else self.activation(y)

    def _windows(self, x):
        """(B, n, width) -> (B, n, k width)."""
        [size] = self.kernel_size
        [step] = self.dilation_rate
        unseen = (size - 1) * step
        before = {"causal": unseen, "same": unseen // 2, "valid": 0}[self.padding]
        behind = unseen - before if self.padding == "same" else 0
        padded = ops.pad(x, ((0, 0), (before, behind), (0, 0)))
        length = ops.shape(padded)[1] - unseen
        starts = range(0, unseen + 1, step)
        return ops.concatenate([padded[:, at : at + length] for at in starts], axis=-1)


def plus_bias(y: Tensor, bias: Tensor) -> Tensor:
    """`y + bias`, whose gradient is summed in float32.

    Args:
        y: (..., width).
        bias: (width,), of any dtype.
    """
    return y + ops.cast(bias, y.dtype)
