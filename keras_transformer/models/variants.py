"""The choices of a model by name: where its norms stand and what its feed-forward networks apply
(Vaswani et al. 2017, sections 3.1 and 3.3).

The first of each table is the paper's.
"""

import keras

from keras_transformer.layers import PostNorm, PreNorm

NORMS = {"post": PostNorm, "pre": PreNorm}
# "gelu" is exact: x Phi(x), by the error function. "swish" is x sigmoid(x).
ACTIVATIONS = {
    "relu": keras.activations.relu,
    "gelu": keras.activations.gelu,
    "swish": keras.activations.silu,
}
