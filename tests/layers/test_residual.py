"""Sections 3.1 and 5.4: LayerNorm(x + Dropout(Sublayer(x)))."""

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.layers import PostNorm


@pytest.fixture
def x(random):
    return random(2, 5, 8)


@pytest.fixture
def sublayer_output(random):
    return random(2, 5, 8)


def test_post_norm_is_the_paper_s(x, sublayer_output, randomized):
    layer = randomized(PostNorm(0.5), x, sublayer_output)
    gain, bias = layer.get_weights()
    expected = paper.post_norm(x, sublayer_output, gain, bias)
    np.testing.assert_allclose(layer(x, sublayer_output), expected, rtol=0, atol=1e-6)
    pre_norm = x + paper.layer_norm(sublayer_output, gain, bias)
    assert np.abs(expected - pre_norm).max() > 0.1


def test_a_constant_row_is_normalized_to_the_bias(randomized):
    x = np.full((1, 1, 8), 3.0, "float32")
    layer = randomized(PostNorm(), x, x)
    np.testing.assert_allclose(
        layer(x, x)[0, 0], layer.get_weights()[1], atol=1e-3
    )  # float32 times epsilon^-0.5 = 1000


def test_dropout_acts_in_training_only(x, sublayer_output):
    keras.utils.set_random_seed(0)
    layer = PostNorm(0.5)
    np.testing.assert_array_equal(
        layer(x, sublayer_output, training=False), layer(x, sublayer_output)
    )
    assert np.abs(layer(x, sublayer_output, training=True) - layer(x, sublayer_output)).max() > 0.1


def test_dropout_spares_the_residual_path(x):
    layer = PostNorm(0.9)
    np.testing.assert_allclose(
        layer(x, np.zeros_like(x), training=True), layer(x, np.zeros_like(x)), rtol=0, atol=1e-6
    )
    assert (
        np.abs(layer(np.zeros_like(x), x, training=True) - layer(np.zeros_like(x), x)).max() > 0.1
    )


def test_dropout_preserves_the_expectation_of_the_sublayer_output(monkeypatch):
    keras.utils.set_random_seed(0)
    x, ones = np.zeros((16, 32, 64), "float32"), np.ones((16, 32, 64), "float32")
    layer = PostNorm(0.2)
    layer(x, ones)
    monkeypatch.setattr(layer, "norm", lambda total: total)
    out = np.array(layer(x, ones, training=True))
    np.testing.assert_allclose(np.unique(out), [0, 1.25])
    assert abs(out.mean() - 1) < 4 * (0.2 / 0.8 / out.size) ** 0.5
    assert np.mean(out == 0) > 0.1


def test_config_round_trip(x, sublayer_output, round_trip):
    layer = PostNorm(0.3, name="p")
    clone = round_trip(layer, x, sublayer_output)
    np.testing.assert_array_equal(clone(x, sublayer_output), layer(x, sublayer_output))
    assert clone.sublayer_dropout.rate == 0.3


def test_mixed_bfloat16_keeps_float32_weights(x, sublayer_output):
    layer = PostNorm(0.1, dtype="mixed_bfloat16")
    assert keras.backend.standardize_dtype(layer(x, sublayer_output).dtype) == "bfloat16"
    assert {w.dtype for w in layer.weights} == {"float32"}
