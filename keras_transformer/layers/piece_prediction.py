"""BERT's head between the encoder and the projection that section 3.4 ties to the embeddings
(Vaswani et al. 2017).
"""

from collections.abc import Callable

import keras
from keras import ops

from keras_transformer.layers.linear_maps import Dense
from keras_transformer.layers.normalization import LayerNormalization
from keras_transformer.layers.residual import EPSILON
from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class PiecePrediction(keras.layers.Layer):
    """Take the states of some places, and make of each what the table of embeddings is asked with.

        LayerNorm(activation(x[places] W + b)),    W: (d_model, d_model)

    Args:
        activation: a Keras activation or its name; BERT's is "gelu".
        epsilon: what the norm adds to the variance.

    Call arguments:
        x: states, (B, T, d_model).
        places: numbers of tokens, integers (B, M), each from 0 to T - 1.

    Returns:
        (B, M, d_model).

    Reference: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for
        Language Understanding", section 3.1, and its program.
    """

    def __init__(self, activation: str | Callable = "gelu", epsilon: float = EPSILON, **kwargs):
        super().__init__(**kwargs)
        self.activation = keras.activations.get(activation)
        self.norm = LayerNormalization(epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, x_shape, places_shape):
        self.dense = Dense(x_shape[-1], self.activation, dtype=self.dtype_policy, name="dense")
        self.dense.build(x_shape)
        self.norm.build(x_shape)

    def call(self, x: Tensor, places: Tensor) -> Tensor:
        batch = ops.shape(x)[0]
        length = ops.shape(x)[1]
        width = x.shape[-1]
        # Numbers of rows where all sentences lie in one matrix.
        rows = places + (ops.arange(batch, dtype=places.dtype) * length)[:, None]
        taken = ops.take(ops.reshape(x, (-1, width)), rows, axis=0)
        return self.norm(self.dense(taken))

    def compute_output_shape(self, x_shape, places_shape):
        return (*places_shape, x_shape[-1])

    def get_config(self):
        return {
            **super().get_config(),
            "activation": keras.activations.serialize(self.activation),
            "epsilon": self.norm.epsilon,
        }


@keras.saving.register_keras_serializable("keras_transformer")
class PieceBias(keras.layers.Layer):
    """Add a learned number to the logit of each piece: how frequent it is.

    Call arguments:
        logits: (..., V).

    Returns:
        (..., V).
    """

    def build(self, logits_shape):
        self.bias = self.add_weight(name="bias", shape=(logits_shape[-1],), initializer="zeros")

    def call(self, logits: Tensor) -> Tensor:
        return logits + ops.cast(self.bias, logits.dtype)

    def compute_output_shape(self, logits_shape):
        return logits_shape
