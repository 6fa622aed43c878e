"""Heads that predict the tokens after the next one, against NumPy in float64."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.layers import ProposalHeads

B, T, D, K = 64, 5, 8, 3
X, E = np.random.default_rng(0).normal(size=(2, B, T, D)).astype("float32")


@pytest.fixture(scope="module")
def heads():
    layer = ProposalHeads(block_size=K, d_ff=16)
    layer(X, E)
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(weight, 0.3) for weight in layer.get_weights()])
    return layer


def by_hand(heads, number, place):
    """head_m(x_t) = x_t + FFN_m(x_t + e_(t + 1) W) of a place t, eq. 2 inside: (B, d_model)."""
    x = np.float64(X[:, place])
    if number == 1:
        return x
    [w] = heads.certain.get_weights()
    w_1, b_1, w_2, b_2 = (np.float64(one) for one in heads.networks[number - 2].get_weights())
    read = x + np.float64(E[:, place + 1]) @ w
    return x + np.maximum(read @ w_1 + b_1, 0) @ w_2 + b_2


def possible(heads, place):
    """What each head that reads no place before the first makes of a place, (B, d_model) each."""
    return [
        by_hand(heads, number, place + 1 - number) for number in range(1, min(K, place + 1) + 1)
    ]


def test_in_training_each_position_is_predicted_by_a_head_that_is_drawn_for_it(heads):
    found = np.array(heads(X, E, training=True))
    drawn = []
    for place in range(T):
        errors = [np.abs(found[:, place] - one).max(axis=1) for one in possible(heads, place)]
        assert np.min(errors, axis=0).max() < 1e-5
        drawn.append(np.argmin(errors, axis=0))
    assert not drawn[0].any()
    assert {*drawn[1]} == {0, 1}
    # Each of three for a third of 64 rows and 3 places: within 5 standard deviations.
    counts = np.bincount(np.concatenate(drawn[2:]), minlength=K)
    assert (np.abs(counts - B) < 33).all()
    # A control: the next call draws again.
    assert (np.array(heads(X, E, training=True)) != found).any()


def test_else_it_is_the_first_head_and_a_stepper_gives_the_others(heads):
    np.testing.assert_array_equal(heads(X, E), X)
    expected = np.stack([by_hand(heads, number, 2) for number in (2, 3)], axis=1)
    np.testing.assert_allclose(heads.stepper()(X[:, 2], E[:, 3]), expected, rtol=0, atol=1e-5)


def test_later_positions_change_nothing_and_each_weight_learns(heads):
    keras.utils.set_random_seed(1)
    layer = ProposalHeads.from_config(heads.get_config())
    layer(X, E)
    layer.set_weights(heads.get_weights())
    state = np.array(np.asarray(layer.seed_generator.state))
    before = np.array(layer(X, E, training=True))
    layer.seed_generator.state.assign(state)
    is_early = np.arange(T)[:, None] < 3
    after = np.array(layer(np.where(is_early, X, -X), np.where(is_early, E, -E), training=True))
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).any()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(X, E, training=True) ** 2)
    gradients = tape.gradient(loss, [one.value for one in layer.trainable_variables])
    assert len(gradients) == 1 + 4 * (K - 1)
    assert all(np.abs(one).max() > 0 for one in gradients)


def test_mixed_bfloat16_computes_in_bfloat16_near_float32(heads):
    mixed = ProposalHeads(block_size=K, d_ff=16, dtype="mixed_bfloat16")
    assert keras.backend.standardize_dtype(mixed(X, E, training=True).dtype) == "bfloat16"
    mixed.set_weights(heads.get_weights())
    # The larger the numbers, the coarser bfloat16.
    rows = X[:, 2], E[:, 3] / 4
    found = mixed.stepper()(*(tf.cast(one, "bfloat16") for one in rows))
    found = np.array(tf.cast(found, tf.float32))
    np.testing.assert_allclose(found, heads.stepper()(*rows), rtol=0, atol=0.1)
