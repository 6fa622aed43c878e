"""The Add & Norm around every sublayer (Vaswani et al. 2017, sections 3.1 and 5.4)."""

import keras

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.normalization import LayerNormalization


def residual_initializer(branches):
    """How the last matrix of each sublayer starts: Glorot's uniform, times branches^-0.5.

    The paper does not say how weights start. With so many sublayers added up, each a little
    quieter, the sum starts as loud as one: without it the post-norm stack spends its first thousand
    steps on the frequencies of words alone (see benchmarks/README.md).

    Args:
        branches: sublayers that a stack adds to its residual stream.

    Reference: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section
        2.3.
    """
    return keras.initializers.VarianceScaling(
        scale=1.0 / branches, mode="fan_avg", distribution="uniform"
    )


@keras.saving.register_keras_serializable("keras_transformer")
class PostNorm(keras.layers.Layer):
    """Dropout, residual sum, layer normalization, in the paper's order.

        LayerNorm(x + Dropout(Sublayer(x)))

    Args:
        dropout: probability in [0, 1), applied to the sublayer's output "before it is added to the
            sublayer input".

    Call arguments:
        x: the sublayer's input, (B, T, d_model).
        sublayer_output: Sublayer(x), (B, T, d_model).

    Returns:
        (B, T, d_model).

    Reference: Ba et al. 2016, "Layer Normalization".
    """

    def __init__(self, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.dropout = dropout
        self.sublayer_dropout = Dropout(dropout, dtype=self.dtype_policy, name="sublayer_dropout")
        self.norm = LayerNormalization(epsilon=1e-6, dtype=self.dtype_policy, name="norm")

    def build(self, x_shape, sublayer_output_shape):
        self.norm.build(x_shape)

    def call(self, x, sublayer_output):
        return self.norm(x + self.sublayer_dropout(sublayer_output))

    def compute_output_shape(self, x_shape, sublayer_output_shape):
        return x_shape

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout}
