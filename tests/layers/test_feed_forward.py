"""Section 3.3: equation 2 in float64, and what may stand in the place of its max(0, .)."""

import math

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.layers import EncoderLayer, FeedForward, GatedFeedForward
from keras_transformer.models.sized_model import activation as activation_of


@pytest.fixture
def x(random):
    return random(2, 5, 8)


def test_feed_forward_is_equation_2(x, randomized):
    layer = randomized(FeedForward(32), x)
    expected = paper.feed_forward(x, *layer.get_weights())
    np.testing.assert_allclose(layer(x), expected, rtol=1e-6, atol=1e-6)
    w_1, b_1, w_2, b_2 = layer.get_weights()
    assert np.abs(expected - ((x @ w_1 + b_1) @ w_2 + b_2)).max() > 0.1  # without max(0, .)


def gelu(x):
    """Compute x Phi(x), by the error function."""
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def swish(x):
    """Compute x / (1 + exp(-x))."""
    return x / (1 + np.exp(-x))


FORMULAS = {"gelu": gelu, "swish": swish, "relu": lambda x: np.maximum(0.0, x)}


@pytest.mark.parametrize("activation", FORMULAS)
def test_an_activation_takes_its_place_between_the_maps(activation, x, randomized):
    layer = randomized(FeedForward(32, activation=activation_of(activation)), x)
    w_1, b_1, w_2, b_2 = (weight.astype("float64") for weight in layer.get_weights())
    expected = {name: formula(3 * x @ w_1 + b_1) @ w_2 + b_2 for name, formula in FORMULAS.items()}
    actual = layer(3 * x)
    np.testing.assert_allclose(actual, expected.pop(activation), rtol=0, atol=5e-6)
    assert min(np.abs(actual - other).max() for other in expected.values()) > 0.01


@pytest.mark.parametrize("activation", FORMULAS)
def test_a_stepper_gives_what_call_gives(activation, x, randomized):
    layer = randomized(FeedForward(32, activation=activation_of(activation)), x)
    stepper = layer.stepper()
    state = stepper.start(2)
    assert (state, stepper.growing) == ((), ())
    for t in range(5):
        y, state = stepper(x[:, t], state)
        np.testing.assert_allclose(y, layer(x)[:, t], rtol=1e-6, atol=1e-6)
        assert state == ()
    assert np.abs(y - layer(x)[:, 0]).max() > 0.1


def test_a_gated_network_with_swish_is_swiglu(x, randomized):
    layer = randomized(GatedFeedForward(32, "silu"), x)
    weights = layer.get_weights()
    assert [weight.shape for weight in weights] == [(8, 32), (32, 8), (8, 32)]
    expected = paper.swiglu(x, *weights)
    np.testing.assert_allclose(layer(x), expected, rtol=0, atol=2e-6)
    w, w_2, v = weights
    assert np.abs(expected - paper.swiglu(x, v, w_2, w)).max() > 0.01  # the gate's place counts
    stepper = layer.stepper()
    y, state = stepper(x[:, 2], stepper.start(2))
    np.testing.assert_allclose(y, expected[:, 2], rtol=0, atol=2e-6)
    assert (state, stepper.growing) == ((), ())


def test_two_thirds_of_d_ff_keep_a_gated_network_s_parameters(x):
    plain, gated = FeedForward(48), GatedFeedForward(32)
    plain(x), gated(x)
    assert gated.count_params() == plain.count_params() - 48 - 8  # it has no biases


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_dropout_stands_behind_the_activation_in_training_only(kind, x):
    keras.utils.set_random_seed(0)
    layer = kind(400, dropout=0.25)
    np.testing.assert_array_equal(layer(x), layer(x, training=False))
    layer.outer.kernel.assign(np.eye(400, 8))
    # The first eight units of the inner layer are what comes out.
    plain, dropped = np.array(layer(x)), np.array(layer(x, training=True))
    kept = dropped != 0
    np.testing.assert_allclose(dropped[kept], plain[kept] / 0.75, rtol=1e-5)
    assert not kept[plain != 0].all()


@pytest.mark.parametrize("kind", [EncoderLayer, None, "Dense", 3])
def test_what_is_no_feed_forward_network_is_refused_by_name(kind):
    with pytest.raises(ValueError, match="`feed_forward` must be a subclass of FeedForward"):
        EncoderLayer(2, 8, 16, feed_forward=kind)
