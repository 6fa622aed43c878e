"""Position-wise feed-forward networks (Vaswani et al. 2017, section 3.3, eq. 2), those with gates,
and the activations that came after ReLU.
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.linear_maps import Dense, Matrix
from keras_transformer.layers.prototypes import KeepsShape, check_sizes
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
def gelu(x: Tensor) -> Tensor:
    """0.5 x (1 + erf(x / sqrt(2))): Hendrycks and Gimpel 2016, "Gaussian Error Linear Units
    (GELUs)", section 2. TensorFlow's own takes 1.5 times as long.
    """
    half = 0.5 * x
    return half + half * ops.erf(x * 0.5**0.5)


@keras.saving.register_keras_serializable("keras_transformer")
def gelu_tanh(x: Tensor) -> Tensor:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): Hendrycks and Gimpel 2016, section 2."""
    return keras.activations.gelu(x, approximate=True)


@keras.saving.register_keras_serializable("keras_transformer")
class FeedForward(KeepsShape):
    """Two linear maps with an activation between them, the same at every position.

        FFN(x) = max(0, x W_1 + b_1) W_2 + b_2,    W_1: (d_model, d_ff), W_2: (d_ff, d_model)

    Args:
        d_ff: inner width.
        activation: a Keras activation or its name; the paper's is "relu".
        output_initializer: initializer of W_2.
        dropout: probability in [0, 255/256] after the activation; the paper has none there.

    Call arguments:
        x: (B, T, d_model).

    Returns:
        (B, T, d_model).
    """

    use_bias = True

    def __init__(
        self,
        d_ff: int,
        activation: str | Callable = "relu",
        output_initializer: str | keras.initializers.Initializer = "glorot_uniform",
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(d_ff=d_ff)
        self.d_ff = int(d_ff)
        self.activation = keras.activations.get(activation)
        # A Keras initializer returns the same numbers at every call. A clone has a seed of its own.
        self.output_initializer = keras.initializers.get(output_initializer).clone()
        self.dropout = dropout
        self.inner_dropout = Dropout(dropout, dtype=self.dtype_policy, name="inner_dropout")

    def build(self, x_shape):
        self.inner = self._dense(self.d_ff, "inner", activation=self.activation)
        self.outer = self._dense(x_shape[-1], "outer", kernel_initializer=self.output_initializer)
        self.inner.build(x_shape)
        self.outer.build((*x_shape[:-1], self.d_ff))

    def _dense(self, width, name, **kwargs):
        return Dense(width, use_bias=self.use_bias, dtype=self.dtype_policy, name=name, **kwargs)

    def call(self, x: Tensor) -> Tensor:
        return self.outer(self.inner_dropout(self.inner(x)))

    def maps(self) -> list[keras.layers.Dense]:
        """Return the linear maps, the activated one first and the outer one second."""
        return [self.inner, self.outer]

    def stepper(self) -> "FeedForwardStepper":
        return FeedForwardStepper(self)


@keras.saving.register_keras_serializable("keras_transformer")
class GatedFeedForward(FeedForward):
    """A feed-forward network whose inner map is the product of two linear maps, one of them
    activated. With the activation swish it is SwiGLU.

        FFN(x) = (activation(x W) * x V) W_2,    W, V: (d_model, d_ff), W_2: (d_ff, d_model)

    It has three matrices where `FeedForward` has two, and no biases. With two thirds of
    `FeedForward`'s d_ff it has as many parameters.

    Reference: Shazeer 2020, "GLU Variants Improve Transformer", eq. 6.
    """

    use_bias = False

    def build(self, x_shape):
        super().build(x_shape)
        self.linear = self._dense(self.d_ff, "linear")
        self.linear.build(x_shape)

    def call(self, x: Tensor) -> Tensor:
        return self.outer(self.inner_dropout(self.inner(x) * self.linear(x)))

    def maps(self) -> list[keras.layers.Dense]:
        """Return the linear maps: activated, outer, and the one that is not activated."""
        return [self.inner, self.outer, self.linear]


class FeedForwardStepper:
    """A `FeedForward` for rows (rows, d_model), with matrices laid out once. Its state is empty."""

    growing = ()

    def __init__(self, feed_forward: FeedForward):
        activated, outer, *linear = feed_forward.maps()
        policy = feed_forward.dtype_policy
        inner = [activated, *linear]
        self._activation = feed_forward.activation
        self._inner = Matrix([map_.kernel for map_ in inner], policy, [map_.bias for map_ in inner])
        self._outer = Matrix([outer.kernel], policy, [outer.bias])

    def start(self, rows: int | Tensor) -> tuple[()]:
        return ()

    def __call__(self, x: Tensor, state: tuple[()]) -> tuple[Tensor, tuple[()]]:
        activated, *linear = self._inner(x)
        inner = self._activation(activated)
        for factor in linear:
            inner = inner * factor
        [outer] = self._outer(inner)
        return outer, state
