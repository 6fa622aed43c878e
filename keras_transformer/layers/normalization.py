"""Layer normalization (Vaswani et al. 2017, section 3.1), and by the root mean square alone."""

import numbers

import keras
from keras import ops

from keras_transformer.layers.prototypes import KeepsShape
from keras_transformer.layers.tensors import Tensor


class _Normalization(KeepsShape):
    """Base class of the norms: epsilon, and the learned vectors, each with its initializer."""

    learned = (("gamma", "ones"),)

    def __init__(self, epsilon: float = 1e-6, **kwargs):
        super().__init__(**kwargs)
        if not (isinstance(epsilon, numbers.Real) and epsilon > 0):
            raise ValueError(f"`epsilon` must be above 0. Received: {epsilon=}. Try 1e-6.")
        self.epsilon = epsilon

    def build(self, x_shape):
        # These few numbers stay in float32 whatever the dtype policy.
        options = {"shape": (x_shape[-1],), "dtype": "float32", "autocast": False}
        for name, initializer in self.learned:
            setattr(self, name, self.add_weight(name=name, initializer=initializer, **options))


@keras.saving.register_keras_serializable("keras_transformer")
class LayerNormalization(_Normalization):
    """Shift and scale each position's activations to mean 0 and variance 1, then by a learned gain
    and bias.

        y    = gamma * unit + beta
        unit = (x - mean(x)) / sqrt(var(x) + epsilon)          over the last axis, in float32
        dx   = (g - mean(g) - unit * mean(g * unit)) / sqrt(var(x) + epsilon),  g = gamma * dy

    The gradient is explicit, to save memory: it keeps only `unit`, in the dtype of `x`. Automatic
    differentiation would keep the output of each operation.

    Args:
        epsilon: added to the variance.

    Call arguments:
        x: (..., d_model).

    Returns:
        The shape and dtype of `x`.

    Reference: Ba et al. 2016, "Layer Normalization".
    """

    learned = (("gamma", "ones"), ("beta", "zeros"))

    def call(self, x: Tensor) -> Tensor:
        width = x.shape[-1]

        @ops.custom_gradient
        def normalized(x, gamma, beta):
            centred = ops.cast(x, "float32")
            centred = centred - ops.mean(centred, axis=-1, keepdims=True)
            variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
            inverse = ops.rsqrt(variance + self.epsilon)
            unit = centred * inverse
            saved_unit = ops.cast(unit, x.dtype)

            def gradient(*args, upstream=None):
                upstream = ops.cast(args[-1] if upstream is None else upstream, "float32")
                unit = ops.cast(saved_unit, "float32")
                at_unit = upstream * gamma
                along = upstream * unit
                d_gamma, d_beta = (
                    ops.sum(ops.reshape(values, (-1, width)), axis=0)
                    for values in (along, upstream)
                )
                mean = ops.mean(at_unit, axis=-1, keepdims=True)
                mean_along = ops.mean(along * gamma, axis=-1, keepdims=True)
                d_x = ops.cast(inverse * (at_unit - mean - unit * mean_along), x.dtype)
                return d_x, d_gamma, d_beta

            return ops.cast(unit * gamma + beta, x.dtype), gradient

        # Read the variables here: TensorFlow forbids it in a function with a custom gradient.
        return normalized(x, ops.reshape(self.gamma, (width,)), ops.reshape(self.beta, (width,)))


@keras.saving.register_keras_serializable("keras_transformer")
class RmsNormalization(_Normalization):
    """Scale each position's activations to a mean square of 1, then by a learned gain.

        y = gamma * x / sqrt(mean(x^2) + epsilon)              over the last axis, in float32

    Arguments as in `LayerNormalization`.

    Reference: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization".
    """

    def call(self, x: Tensor) -> Tensor:
        wide = ops.cast(x, "float32")
        mean_square = ops.mean(ops.square(wide), axis=-1, keepdims=True)
        return ops.cast(wide * ops.rsqrt(mean_square + self.epsilon) * self.gamma, x.dtype)
