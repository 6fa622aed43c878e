"""Section 3.3: equation 2 in float64."""

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.layers import FeedForward


@pytest.fixture
def x(random):
    return random(2, 5, 8)


def test_feed_forward_is_equation_2(x, randomized):
    layer = randomized(FeedForward(32), x)
    expected = paper.feed_forward(x, *layer.get_weights())
    np.testing.assert_allclose(layer(x), expected, rtol=0, atol=1e-6)
    w_1, b_1, w_2, b_2 = layer.get_weights()
    assert np.abs(expected - ((x @ w_1 + b_1) @ w_2 + b_2)).max() > 0.1  # without max(0, .)


def test_the_maps_are_the_same_at_every_position(x, randomized):
    layer = randomized(FeedForward(32), x)
    np.testing.assert_allclose(layer(x[:, ::-1])[:, ::-1], layer(x), rtol=0, atol=1e-6)
    assert np.abs(layer(x)[:, ::-1] - layer(x)).max() > 0.1


def test_weights_have_the_paper_s_shapes(x):
    layer = FeedForward(32)
    layer(x)
    assert [tuple(w.shape) for w in layer.weights] == [(8, 32), (32,), (32, 8), (8,)]


def test_another_activation_takes_the_place_of_relu(x, randomized):
    layer = randomized(FeedForward(32, activation="gelu"), x)
    w_1, b_1, w_2, b_2 = layer.get_weights()
    np.testing.assert_allclose(
        layer(x), keras.activations.gelu(x @ w_1 + b_1) @ w_2 + b_2, rtol=0, atol=1e-6
    )


def test_config_round_trip(x, round_trip):
    layer = FeedForward(32, activation="gelu", name="f")
    np.testing.assert_array_equal(round_trip(layer, x)(x), layer(x))


def test_mixed_bfloat16_keeps_float32_weights(x):
    layer = FeedForward(32, dtype="mixed_bfloat16")
    assert keras.backend.standardize_dtype(layer(x).dtype) == "bfloat16"
    assert {w.dtype for w in layer.weights} == {"float32"}
