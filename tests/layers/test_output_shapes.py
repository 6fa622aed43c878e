"""What a layer says of its output's shape is the shape of its output."""

import numpy as np
import pytest

from keras_transformer.layers import (
    Decoder,
    DecoderLayer,
    Dropout,
    Encoder,
    EncoderLayer,
    FeedForward,
    GatedFeedForward,
    LayerNormalization,
    MultiHeadAttention,
)

X = np.ones((2, 3, 8), "float32")
MEMORY = np.ones((2, 5, 8), "float32")
ENCODER = {"num_heads": 2, "d_model": 8, "d_ff": 16}
LAYERS = {
    MultiHeadAttention: ({"num_heads": 2, "d_model": 8}, (X, MEMORY, MEMORY)),
    FeedForward: ({"d_ff": 16}, (X,)),
    GatedFeedForward: ({"d_ff": 16}, (X,)),
    LayerNormalization: ({}, (X,)),
    Dropout: ({"rate": 0.1}, (X,)),
    EncoderLayer: (ENCODER, (X,)),
    Encoder: ({"num_layers": 2, **ENCODER}, (X,)),
    DecoderLayer: (ENCODER, (X, MEMORY)),
    Decoder: ({"num_layers": 2, **ENCODER}, (X, MEMORY)),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_the_shape_is_known_before_the_output_is(kind):
    arguments, inputs = LAYERS[kind]
    layer = kind(**arguments)
    told = layer.compute_output_shape(*(array.shape for array in inputs))
    assert tuple(told) == tuple(layer(*inputs).shape) == X.shape
