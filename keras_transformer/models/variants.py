"""The choices of a model by name: where its norms stand, what its feed-forward networks apply, how
its residual branches start (Vaswani et al. 2017, sections 3.1 and 3.3).

The first of each table is the paper's, or the default where the paper says nothing.
"""

import keras

from keras_transformer.layers import PostNorm, PreNorm, depth_scaled, glorot

NORMS = {"post": PostNorm, "pre": PreNorm}
# "gelu" is exact: x Phi(x), by the error function. "swish" is x sigmoid(x).
ACTIVATIONS = {
    "relu": keras.activations.relu,
    "gelu": keras.activations.gelu,
    "swish": keras.activations.silu,
}
RESIDUAL_INITIALIZATIONS = {"depth_scaled": depth_scaled, "glorot": glorot}
