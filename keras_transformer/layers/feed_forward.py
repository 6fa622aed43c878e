"""Position-wise feed-forward networks (Vaswani et al. 2017, section 3.3, eq. 2)."""

import keras


@keras.saving.register_keras_serializable("keras_transformer")
class FeedForward(keras.layers.Layer):
    """Two linear maps with an activation between them, the same at every position.

        FFN(x) = max(0, x W_1 + b_1) W_2 + b_2,    W_1: (d_model, d_ff), W_2: (d_ff, d_model)

    Args:
        d_ff: inner width.
        activation: a Keras activation; the paper's is "relu".
        output_initializer: how W_2 starts.

    Call arguments:
        x: (B, T, d_model).

    Returns:
        (B, T, d_model).
    """

    def __init__(self, d_ff, activation="relu", output_initializer="glorot_uniform", **kwargs):
        super().__init__(**kwargs)
        self.d_ff = d_ff
        self.activation = keras.activations.get(activation)
        # A Keras initializer gives the same numbers at every call: a clone of its own draws others.
        self.output_initializer = keras.initializers.get(output_initializer).clone()

    def build(self, x_shape):
        self.inner = keras.layers.Dense(
            self.d_ff, activation=self.activation, dtype=self.dtype_policy, name="inner"
        )
        initializer = self.output_initializer
        self.outer = keras.layers.Dense(
            x_shape[-1], kernel_initializer=initializer, dtype=self.dtype_policy, name="outer"
        )
        self.inner.build(x_shape)
        self.outer.build((*x_shape[:-1], self.d_ff))

    def call(self, x):
        return self.outer(self.inner(x))

    def compute_output_shape(self, x_shape):
        return x_shape

    def get_config(self):
        return {
            **super().get_config(),
            "d_ff": self.d_ff,
            "activation": keras.activations.serialize(self.activation),
            "output_initializer": keras.initializers.serialize(self.output_initializer),
        }
