"""The Add & Norm around every sublayer (Vaswani et al. 2017, sections 3.1 and 5.4), where its norm
stands, and how the sublayer's last matrix is initialized.

A placement is called with `x` and a `sublayer`, a function x -> (y, by-product). The order of
sublayer, dropout, residual sum and norm is written here alone: whole sequences, single positions
and the pass that returns attention weights all call a placement.
"""

from typing import Any

import keras

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.normalization import LayerNormalization, RmsNormalization
from keras_transformer.layers.prototypes import Layer
from keras_transformer.layers.tensors import Sublayer, Tensor

EPSILON = 1e-6


class NormPlacement(Layer):
    """Base class of the placements: a dropout on the sublayer's output and one layer normalization.

    Args:
        dropout: probability in [0, 255/256], applied to the sublayer's output "before it is
            added to the sublayer input".
        epsilon: what the norm adds to the variance.

    Attributes:
        normalization: the class of the norm.

    Call arguments:
        x: (..., d_model).
        sublayer: a function of (..., d_model) that returns the same shape and a by-product.

    Returns:
        (..., d_model), and the sublayer's by-product, unchanged.

    Reference: Ba et al. 2016, "Layer Normalization".
    """

    normalization = LayerNormalization

    def __init__(self, dropout: float = 0.0, epsilon: float = EPSILON, **kwargs):
        super().__init__(**kwargs)
        self.dropout = dropout
        self.epsilon = epsilon
        self.sublayer_dropout = Dropout(dropout, dtype=self.dtype_policy, name="sublayer_dropout")
        self.norm = self.normalization(epsilon, dtype=self.dtype_policy, name="norm")

    def build(self, x_shape):
        self.norm.build(x_shape)

    @classmethod
    def end_of_stack(cls, epsilon: float, dtype: keras.DTypePolicy) -> keras.layers.Layer:
        """Return the layer that follows the last one of a stack, named `final_norm`."""
        raise NotImplementedError


@keras.saving.register_keras_serializable("keras_transformer")
class PostNorm(NormPlacement):
    """The paper's order: the norm comes after the residual sum.

        LayerNorm(x + Dropout(Sublayer(x)))

    Arguments as in `NormPlacement`.
    """

    def call(self, x: Tensor, sublayer: Sublayer) -> tuple[Tensor, Any]:
        y, by_product = sublayer(x)
        return self.norm(x + self.sublayer_dropout(y)), by_product

    @classmethod
    def end_of_stack(cls, epsilon: float, dtype: keras.DTypePolicy) -> keras.layers.Layer:
        """Return an identity: the last layer's output is normalized already."""
        return keras.layers.Identity(dtype=dtype, name="final_norm")


@keras.saving.register_keras_serializable("keras_transformer")
class PreNorm(NormPlacement):
    """The norm stands before the sublayer, and the residual stream is never normalized.

        x + Dropout(Sublayer(LayerNorm(x)))

    Reference: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".
    """

    def call(self, x: Tensor, sublayer: Sublayer) -> tuple[Tensor, Any]:
        y, by_product = sublayer(self.norm(x))
        return x + self.sublayer_dropout(y), by_product

    @classmethod
    def end_of_stack(cls, epsilon: float, dtype: keras.DTypePolicy) -> keras.layers.Layer:
        """Return a normalization of the whole residual stream."""
        return cls.normalization(epsilon, dtype=dtype, name="final_norm")


@keras.saving.register_keras_serializable("keras_transformer")
class PreRmsNorm(PreNorm):
    """`PreNorm` by the root mean square alone, as in T5.

        x + Dropout(Sublayer(RmsNorm(x)))

    Reference: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified
        Text-to-Text Transformer", section 2.1.
    """

    normalization = RmsNormalization


@keras.saving.register_keras_serializable("keras_transformer")
def depth_scaled(branches: int) -> keras.initializers.Initializer:
    """Return the initializer of each sublayer's last matrix: Glorot's uniform, times branches^-0.5.

    The paper does not say how weights are initialized. A stack adds `branches` sublayers to its
    residual stream. With this factor, their sum starts with the variance of one sublayer. Without
    it, a post-norm stack learns only word frequencies for a thousand steps (benchmarks/LOG.md).

    Args:
        branches: number of sublayers that a stack adds to its residual stream.

    Reference: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section
        2.3.
    """
    return keras.initializers.VarianceScaling(
        scale=1.0 / branches, mode="fan_avg", distribution="uniform"
    )


@keras.saving.register_keras_serializable("keras_transformer")
def glorot(branches: int) -> keras.initializers.Initializer:
    """Return Glorot's uniform for each sublayer's last matrix, whatever `branches` is, as for all
    matrices in tensor2tensor, the program of the paper's authors.

    Reference: Glorot and Bengio 2010, "Understanding the difficulty of training deep feedforward
        neural networks".
    """
    return keras.initializers.GlorotUniform()
