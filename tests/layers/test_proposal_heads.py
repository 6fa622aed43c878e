"""Heads that predict the tokens after the next one, against NumPy in float64."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import paper

from keras_transformer.layers import ProposalHeads

B, T, D, S, K, H = 64, 5, 8, 4, 3, 2
RANDOM = np.random.default_rng(0)
X, E = RANDOM.normal(size=(2, B, T, D)).astype("float32")
MEMORY = RANDOM.normal(size=(B, S, 6)).astype("float32")
MASK = np.arange(S) < RANDOM.integers(1, S + 1, (B, 1, 1))


@pytest.fixture(scope="module")
def heads():
    layer = ProposalHeads(block_size=K, num_heads=H, d_ff=16)
    layer(X, E, MEMORY)
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(weight, 0.3) for weight in layer.get_weights()])
    return layer


def weights(layer):
    return [np.float64(weight) for weight in layer.get_weights()]


def by_hand(heads, number, place):
    """head_m(x_t) of a place t, (B, d_model); before the first place x is 0."""
    x = np.float64(X[:, place] if place >= 0 else np.zeros_like(X[:, 0]))
    if number == 1:
        return x
    w, b = weights(heads.maps)
    columns = slice((number - 2) * D, (number - 1) * D)
    y = x + np.concatenate([x, E[:, place + 1]], axis=1) @ w[:, columns] + b[columns]
    attention = weights(heads.attention)
    network = weights(heads.feed_forward)

    def attended(y):
        """One query of each row."""
        return paper.multi_head_attention(y[:, None], MEMORY, MEMORY, *attention, H, MASK)[:, 0]

    z = paper.post_norm(y, attended, *weights(heads.attention_norm.norm))
    gains = weights(heads.feed_forward_norm.norm)
    return paper.post_norm(z, lambda z: paper.feed_forward(z, *network), *gains)


def possible(heads, place):
    """The outputs (B, d_model) for a place, of each head that needs no place before the first."""
    return [by_hand(heads, ahead, place + 1 - ahead) for ahead in range(1, min(K, place + 2) + 1)]


def test_in_training_each_position_is_predicted_by_a_head_that_is_drawn_for_it(heads):
    outputs = np.array(heads(X, E, MEMORY, memory_mask=MASK, training=True))
    heads_used = []
    for place in range(T):
        errors = [np.abs(outputs[:, place] - y).max(axis=1) for y in possible(heads, place)]
        assert np.min(errors, axis=0).max() < 1e-5
        heads_used.append(np.argmin(errors, axis=0))
    assert {*heads_used[0]} == {0, 1}
    # Each of 3 heads serves a third of 64 rows and 4 places, within 5 standard deviations.
    counts = np.bincount(np.concatenate(heads_used[1:]), minlength=K)
    assert (np.abs(counts - 4 * B / 3) < 38).all()
    # A control: the next call draws again.
    assert (np.array(heads(X, E, MEMORY, memory_mask=MASK, training=True)) != outputs).any()


def test_in_inference_call_is_the_first_head_and_a_stepper_gives_the_others(heads):
    np.testing.assert_array_equal(heads(X, E, MEMORY), X)
    expected = np.stack([by_hand(heads, number, 2) for number in (2, 3)], axis=1)
    source = heads.memory_cache(MEMORY)
    actual = heads.stepper()(X[:, 2], E[:, 3], source, MASK)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


def test_later_positions_change_nothing_and_each_weight_learns(heads):
    keras.utils.set_random_seed(1)
    layer = ProposalHeads.from_config(heads.get_config())
    layer(X, E, MEMORY)
    layer.set_weights(heads.get_weights())
    state = np.array(np.asarray(layer.seed_generator.state))
    before = np.array(layer(X, E, MEMORY, training=True))
    layer.seed_generator.state.assign(state)
    is_early = np.arange(T)[:, None] < 3
    changed = (np.where(is_early, array, -array) for array in (X, E))
    after = np.array(layer(*changed, MEMORY, training=True))
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).any()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(X, E, MEMORY, training=True) ** 2)
    gradients = tape.gradient(loss, [variable.value for variable in layer.trainable_variables])
    assert len(gradients) == 2 + 4 + 4 + 2 * 2
    assert all(np.abs(gradient).max() > 0 for gradient in gradients)


def test_mixed_bfloat16_computes_in_bfloat16_near_float32(heads):
    mixed = ProposalHeads(block_size=K, num_heads=H, d_ff=16, dtype="mixed_bfloat16")
    output = mixed(X, E, MEMORY, training=True)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    mixed.set_weights(heads.get_weights())
    # The larger the numbers, the coarser bfloat16.
    rows = X[:, 2], E[:, 3] / 4
    actual = mixed.stepper()(
        *(tf.cast(row, "bfloat16") for row in rows), mixed.memory_cache(MEMORY), MASK
    )
    expected = heads.stepper()(*rows, heads.memory_cache(MEMORY), MASK)
    np.testing.assert_allclose(tf.cast(actual, "float32"), expected, rtol=0, atol=0.1)
