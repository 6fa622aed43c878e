"""Position-wise feed-forward networks (Vaswani et al. 2017, section 3.3, eq. 2)."""

from collections.abc import Callable

import keras

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.linear_maps import Dense
from keras_transformer.layers.matrix import Matrix
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class FeedForward(keras.layers.Layer):
    """Two linear maps with an activation between them, the same at every position.

        FFN(x) = max(0, x W_1 + b_1) W_2 + b_2,    W_1: (d_model, d_ff), W_2: (d_ff, d_model)

    Args:
        d_ff: inner width.
        activation: a Keras activation or its name; the paper's is "relu".
        output_initializer: initializer of W_2.
        dropout: probability in [0, 1) after the activation; the paper has none there.

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
        self.d_ff = d_ff
        self.activation = keras.activations.get(activation)
        # One Keras initializer gives the same numbers at every call. A clone draws its own.
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
        """The linear maps, the activated one first and the outer one second."""
        return [self.inner, self.outer]

    def stepper(self) -> "FeedForwardStepper":
        """The network for one position at a time, with the weights as they are now."""
        return FeedForwardStepper(self)

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        return {
            **super().get_config(),
            "d_ff": self.d_ff,
            "activation": keras.activations.serialize(self.activation),
            "output_initializer": keras.initializers.serialize(self.output_initializer),
            "dropout": self.dropout,
        }


def feed_forward_class(feed_forward: str | type[FeedForward]) -> type[FeedForward]:
    """The class of a feed-forward network, from itself or the name that it is registered under.

    Raises:
        ValueError: for anything else.
    """
    given = feed_forward
    kind = keras.saving.get_registered_object(given) if isinstance(given, str) else given
    if not (isinstance(kind, type) and issubclass(kind, FeedForward)):
        raise ValueError(
            "`feed_forward` must be FeedForward or a subclass, or the name it is registered under. "
            f"Received: feed_forward={given!r}. Try feed_forward=FeedForward."
        )
    return kind


class FeedForwardStepper:
    """`FeedForward.call` on rows, with matrices that are laid out once. Its state is empty.

    Args:
        feed_forward: a built `FeedForward`.

    Call arguments:
        x: (rows, d_model).
        state: the empty tuple.

    Returns:
        (rows, d_model), and the empty tuple.
    """

    growing = ()

    def __init__(self, feed_forward: FeedForward):
        policy = feed_forward.dtype_policy
        inner = feed_forward.inner
        outer = feed_forward.outer
        self._activation = feed_forward.activation
        self._inner = Matrix([inner.kernel], policy, [inner.bias])
        self._outer = Matrix([outer.kernel], policy, [outer.bias])

    def start(self, rows: int | Tensor) -> tuple[()]:
        """The empty state: no position depends on another."""
        return ()

    def __call__(self, x: Tensor, state: tuple[()]) -> tuple[Tensor, tuple[()]]:
        [inner] = self._inner(x)
        [outer] = self._outer(self._activation(inner))
        return outer, state
