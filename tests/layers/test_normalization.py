"""Section 3.1: layer normalization and its explicit gradient, against float64, Keras and torch."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import paper

from keras_transformer.layers import LayerNormalization, RmsNormalization


@pytest.fixture
def x(random):
    return 3 * random(2, 5, 8) + 1


@pytest.fixture
def upstream(random):
    return random(2, 5, 8)


def gradients_of(layer, x, upstream):
    """Output, and gradients by x, gamma and beta."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    return [
        value.numpy()
        for value in (
            y,
            *tape.gradient(y, [x, *layer.trainable_variables], tf.cast(upstream, y.dtype)),
        )
    ]


def test_it_is_that_of_keras_with_its_gradient(x, upstream, randomized):
    ours = randomized(LayerNormalization(epsilon=1e-3), x)
    theirs = randomized(keras.layers.LayerNormalization(epsilon=1e-3), x)
    theirs.set_weights(ours.get_weights())
    for mine, other in zip(
        gradients_of(ours, x, upstream), gradients_of(theirs, x, upstream), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)


def test_a_constant_row_gives_the_bias_and_a_finite_gradient(upstream, randomized):
    x = np.full((2, 5, 8), 3.0, "float32")
    layer = randomized(LayerNormalization(), x)
    y, *gradients = gradients_of(layer, x, upstream)
    np.testing.assert_allclose(
        y, np.broadcast_to(layer.get_weights()[1], x.shape), atol=1e-3
    )  # float32 times epsilon^-0.5 = 1000
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_large_means_do_not_swallow_the_variance(x, randomized):
    layer = randomized(LayerNormalization(), x)
    shifted = (x * 2**10).round() / 2**10 + 2**10  # exact in float32
    np.testing.assert_allclose(
        layer(shifted), paper.layer_norm(shifted, *layer.get_weights()), rtol=0, atol=1e-5
    )


def test_bfloat16_is_normalized_in_float32(x, upstream, randomized):
    layer = randomized(LayerNormalization(dtype="mixed_bfloat16"), x)
    assert {weight.dtype for weight in layer.weights} == {"float32"}
    rounded = tf.cast(x, "bfloat16")
    y, d_x, d_gamma, d_beta = gradients_of(layer, rounded, upstream)
    assert y.dtype == d_x.dtype == rounded.dtype
    assert d_gamma.dtype == d_beta.dtype == "float32"
    expected = paper.layer_norm(tf.cast(rounded, "float32").numpy(), *layer.get_weights())
    assert (
        np.abs(tf.cast(y, "float32").numpy() - expected).max() <= np.abs(expected).max() * 2**-8
    )  # one rounding


def test_gain_and_bias_are_float32_even_where_all_weights_are_bfloat16(x):
    layer = LayerNormalization(dtype="bfloat16")
    layer.build(x.shape)
    assert [weight.dtype for weight in layer.weights] == ["float32", "float32"]


def test_epsilon_is_a_millionth_by_default():
    assert LayerNormalization().epsilon == 1e-6
    row = np.array([[-1e-3, 1e-3]], "float32")  # of variance 1e-6, as large as epsilon
    np.testing.assert_allclose(LayerNormalization()(row), row * 1e3 / 2**0.5, rtol=1e-5)


def test_the_root_mean_square_is_that_of_torch(x, randomized):
    torch = pytest.importorskip("torch")
    layer = randomized(RmsNormalization(1e-3), x)
    theirs = torch.nn.RMSNorm(x.shape[-1], eps=1e-3)
    theirs.weight.data = torch.tensor(layer.gamma.numpy())
    expected = theirs(torch.tensor(np.array(x))).detach().numpy()
    np.testing.assert_allclose(np.array(layer(x)), expected, rtol=1e-6, atol=1e-6)
    # The mean is left where it is.
    assert abs(np.array(layer(x + 1)) - np.array(layer(x))).max() > 0.1
