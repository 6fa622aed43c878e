"""Gated feed-forward networks, in the place of those of section 3.3 (Vaswani et al. 2017)."""

import keras

from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.matrix import Matrix
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class GatedFeedForward(FeedForward):
    """A feed-forward network whose inner map is the product of two, one of them activated. With
    the activation swish it is SwiGLU.

        FFN(x) = (activation(x W) * x V) W_2,    W, V: (d_model, d_ff), W_2: (d_ff, d_model)

    It has three matrices where `FeedForward` has two, and no biases. Two thirds of `FeedForward`'s
    d_ff give as many parameters.

    Arguments and call arguments as in `FeedForward`.

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
        """The linear maps: activated, outer, and the one that is not activated."""
        return [self.inner, self.outer, self.linear]

    def stepper(self) -> "GatedFeedForwardStepper":
        """The network for one position at a time, with the weights as they are now."""
        return GatedFeedForwardStepper(self)


class GatedFeedForwardStepper:
    """`GatedFeedForward.call` on rows. Its state is empty.

    Arguments as in `FeedForwardStepper`.
    """

    growing = ()

    def __init__(self, feed_forward: GatedFeedForward):
        policy = feed_forward.dtype_policy
        self._activation = feed_forward.activation
        self._inner = Matrix([feed_forward.inner.kernel, feed_forward.linear.kernel], policy)
        self._outer = Matrix([feed_forward.outer.kernel], policy)

    def start(self, rows: int | Tensor) -> tuple[()]:
        """The empty state: no position depends on another."""
        return ()

    def __call__(self, x: Tensor, state: tuple[()]) -> tuple[Tensor, tuple[()]]:
        activated, linear = self._inner(x)
        [outer] = self._outer(self._activation(activated) * linear)
        return outer, state
