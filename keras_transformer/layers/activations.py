"""Activations that came after ReLU, in its place in the feed-forward networks of section 3.3
(Vaswani et al. 2017).
"""

import keras
from keras import ops

from keras_transformer.layers.tensors import Tensor


@keras.saving.register_keras_serializable("keras_transformer")
def gelu(x: Tensor) -> Tensor:
    """0.5 x (1 + erf(x / sqrt(2))): Hendrycks and Gimpel 2016, "Gaussian Error Linear Units
    (GELUs)", section 2. TensorFlow's own takes half as long again.
    """
    half = 0.5 * x
    return half + half * ops.erf(x * 0.5**0.5)


@keras.saving.register_keras_serializable("keras_transformer")
def gelu_tanh(x: Tensor) -> Tensor:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))): Hendrycks and Gimpel 2016, section 2."""
    return keras.activations.gelu(x, approximate=True)
