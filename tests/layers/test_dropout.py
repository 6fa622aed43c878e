"""Section 5.4: an entry falls with probability P_drop, alone, and what stays is scaled so that the
expectation stays.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.layers import Dropout

ONES = np.ones((64, 128, 64), "float32")


@pytest.fixture(autouse=True)
def _seed():
    keras.utils.set_random_seed(0)


def shares_dropped(layer, calls):
    """The share of zeros in each call."""
    dropped = tf.function(
        lambda: tf.reduce_mean(tf.cast(layer(tf.constant(ONES), training=True) == 0, "float32"))
    )
    return [float(dropped()) for _ in range(calls)]


def test_entries_are_zero_or_scaled():
    dropped = np.array(Dropout(0.2)(ONES, training=True))
    np.testing.assert_allclose(np.unique(dropped), [0, 1.25])
    assert abs(dropped.mean() - 1) < 0.02


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.25, 0.5, 0.9, 255 / 256])
def test_a_call_drops_what_a_byte_can_tell_and_all_calls_together_the_rate(rate):
    layer = Dropout(rate)
    shares = shares_dropped(layer, 60)
    # A call drops with the next 256th above the rate at most.
    most = min(np.ceil(256 * rate) / 256, 0.5)
    sampling = 5 * (max(most, rate) * (1 - rate) / ONES.size) ** 0.5
    assert all(
        np.floor(256 * rate) / 256 - sampling < share < np.ceil(256 * rate) / 256 + sampling
        for share in shares
    )
    # The threshold varies by less than one part in 256 from call to call.
    assert abs(np.mean(shares) - rate) < 5 * (1 / 256 / 2 + sampling / 5) / 60**0.5


def test_entries_fall_independently_and_anew_at_each_call():
    layer = Dropout(0.5)
    first, second = (np.array(layer(ONES, training=True)).reshape(-1) > 0 for _ in range(2))
    correlations = [
        np.corrcoef(first, second)[0, 1],
        *(np.corrcoef(first[:-lag], first[lag:])[0, 1] for lag in (1, 2, 3, 4, 64)),
    ]
    assert np.abs(correlations).max() < 5 / first.size**0.5


def test_the_gradient_falls_with_its_entry():
    x, layer = tf.constant(ONES[:2]), Dropout(0.3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        dropped = layer(x, training=True)
    np.testing.assert_array_equal(tape.gradient(dropped, x, tf.fill(x.shape, 2.0)), 2 * dropped)


def test_outside_of_training_and_at_rate_zero_nothing_falls():
    np.testing.assert_array_equal(Dropout(0.5)(ONES), ONES)
    np.testing.assert_array_equal(Dropout(0.0)(ONES, training=True), ONES)
    assert Dropout(0.0).variables == []


@pytest.mark.parametrize("shape", [(3,), (1, 5), (0, 4), (2, 3, 7)])
@pytest.mark.parametrize("sizes", ["known sizes", "unknown sizes"])
def test_any_shape_known_or_not_is_dropped_as_in_eager_mode(shape, sizes):
    def dropped(call):
        keras.utils.set_random_seed(1)
        layer = Dropout(0.5)
        return call(layer)(tf.ones(shape)).numpy()

    signature = [tf.TensorSpec(shape if sizes == "known sizes" else [None] * len(shape))]
    eager = dropped(lambda layer: lambda x: layer(x, training=True))
    traced = dropped(
        lambda layer: tf.function(lambda x: layer(x, training=True), input_signature=signature)
    )
    assert traced.shape == shape
    np.testing.assert_array_equal(traced, eager)


def test_the_seed_of_the_process_decides_what_falls():
    def of_seed(seed):
        keras.utils.set_random_seed(seed)
        return np.array(Dropout(0.5)(ONES, training=True))

    np.testing.assert_array_equal(of_seed(1), of_seed(1))
    assert (of_seed(1) != of_seed(2)).any()


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_a_rate_that_is_no_probability_of_this_layer_is_refused(rate):
    with pytest.raises(ValueError, match=r"`rate` must be .* \[0, 255/256\]. Received: rate="):
        Dropout(rate)
