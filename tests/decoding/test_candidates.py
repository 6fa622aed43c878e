"""The arithmetic of one decoding step, against NumPy float64 and a plain sort."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.enumeration import distribution

from keras_transformer.decoding import BeamSearch, GreedySearch, length_penalty
from keras_transformer.decoding.candidates import (
    BLOCK,
    FREE,
    best_tokens,
    log_normalizer,
    next_tokens,
    possible_tokens,
    token_log_probabilities,
)
from keras_transformer.models import Transformer
from pipelines.special_ids import BOS, EOS, PAD, UNK

WIDTHS = [4, 5, 63, 64, 65, 300, 640]


def random_logits(seed, rows, width, levels=None):
    random = np.random.default_rng(seed)
    size = (rows, width)
    logits = random.integers(0, levels, size) if levels else 5 * random.normal(size=size)
    return logits.astype("float32")


def sorted_tokens(row, count, forced, may_end):
    """The best by a stable sort, which leaves equal ones in the order of their ids."""
    row = row.astype("float64")
    row[
        np.arange(len(row)) != forced if forced != FREE else [PAD, BOS, *([] if may_end else [EOS])]
    ] = -np.inf
    return np.argsort(-row, kind="stable")[: min(count, np.isfinite(row).sum())]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_normalizer_is_float64_s(width):
    logits = random_logits(0, 50, width)
    expected = np.log(np.exp(logits.astype("float64")).sum(axis=1))
    np.testing.assert_allclose(log_normalizer(tf.constant(logits)), expected, rtol=1e-6, atol=1e-6)


def test_large_logits_stay_finite():
    normalizers = log_normalizer(tf.constant([[1e4] * 8, [-1e4] * 8]))
    np.testing.assert_allclose(normalizers, [1e4 + np.log(8), -1e4 + np.log(8)], rtol=1e-6)


@pytest.mark.parametrize("width", [*WIDTHS, 7, 8000, 37000])
def test_no_bit_of_a_normalizer_depends_on_the_other_rows(width):
    logits = random_logits(1, 67, width)
    together = log_normalizer(tf.constant(logits)).numpy()
    for row in range(0, 67, 5):
        expected = together[row : row + 1]
        np.testing.assert_array_equal(log_normalizer(tf.constant(logits[row : row + 1])), expected)
    np.testing.assert_array_equal(log_normalizer(tf.constant(logits[::-1].copy())), together[::-1])
    np.testing.assert_array_equal(log_normalizer(tf.constant(logits[3:41])), together[3:41])


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32),
    width=st.sampled_from(WIDTHS),
    levels=st.sampled_from([None, 1, 2, 3, 50]),
    count=st.integers(1, 200),
    data=st.data(),
)
def test_the_best_tokens_are_those_of_a_stable_sort(seed, width, levels, count, data):
    logits, count = random_logits(seed, 5, width, levels), min(count, width)
    forced = data.draw(st.lists(st.sampled_from([FREE, FREE, EOS, UNK]), min_size=5, max_size=5))
    may_end = data.draw(st.none() | st.lists(st.booleans(), min_size=5, max_size=5))
    barring = [tf.constant(forced)] + ([] if may_end is None else [tf.constant(may_end)])
    values, ids = best_tokens(tf.constant(logits), count, *barring)
    possible = possible_tokens(tf.constant(logits), *barring).numpy()
    for row, (row_values, row_ids) in enumerate(zip(values.numpy(), ids.numpy(), strict=True)):
        expected = sorted_tokens(logits[row], count, forced[row], may_end is None or may_end[row])
        there = np.isfinite(row_values)
        assert row_ids[there].tolist() == expected.tolist()
        np.testing.assert_array_equal(row_values[there], logits[row, row_ids[there]])
        everything = sorted_tokens(logits[row], width, forced[row], may_end is None or may_end[row])
        assert np.flatnonzero(np.isfinite(possible[row])).tolist() == sorted(everything)
        np.testing.assert_array_equal(possible[row, everything], logits[row, everything])


def test_blocks_are_in_the_order_of_their_ids_whatever_their_maxima():
    logits = np.zeros((1, 3 * BLOCK), "float32")
    logits[0, [BLOCK - 1, 2 * BLOCK]] = 1.0, 2.0
    _, ids = best_tokens(tf.constant(logits), 3, tf.constant([FREE]))
    assert ids.numpy().tolist() == [[2 * BLOCK, BLOCK - 1, 1]]


# The probabilities of the next tokens against the definition, in NumPy float64.
SHAPES = [(1.0, 0, 1.0), (0.5, 0, 1.0), (2.0, 3, 1.0), (1.0, 0, 0.7), (3.0, 6, 0.5), (1.0, 1, 0.1)]
SIZE = 30


def definition(logits, *shape):
    """Return ids, likeliest first, and the probability that each is drawn."""
    order = [id_ for id_ in np.argsort(-logits, kind="stable") if id_ not in (PAD, BOS)]
    return order, distribution(logits, *shape)[order]


def next_tokens_by(logits, shapes, count):
    temperature, top_k, top_p = map(np.array, zip(*shapes, strict=True))
    temperature, top_p = (tf.constant(column, tf.float32) for column in (temperature, top_p))
    return next_tokens(tf.constant(logits), temperature, tf.constant(top_k), top_p, count)


def test_each_row_follows_the_definition_with_its_own_options():
    logits = np.random.default_rng(2).normal(0, 2, (len(SHAPES), SIZE)).astype("float32")
    logits[:, [PAD, BOS]] = 9  # the likeliest, which never come
    ids, shares, probabilities = next_tokens_by(logits, SHAPES, 20)
    assert ids.shape == (len(SHAPES), 20)
    softmax = np.exp(logits.astype(np.float64))
    softmax /= softmax.sum(axis=1, keepdims=True)
    for row, shape in enumerate(SHAPES):
        order, expected = definition(logits[row], *shape)
        assert ids[row].numpy().tolist() == order[:20]
        np.testing.assert_allclose(shares[row], expected[:20], rtol=1e-5)
        np.testing.assert_allclose(probabilities[row], softmax[row][order[:20]], rtol=1e-5)


def test_a_small_vocabulary_has_fewer_next_tokens():
    ids, shares, _ = next_tokens_by(np.zeros((1, 6), "float32"), [(1.0, 0, 1.0)], 20)
    assert ids.shape == (1, 6)
    np.testing.assert_allclose(shares, [[0.25] * 4 + [0.0] * 2], rtol=1e-6)


# The model scores the output of a search as the search did (section 6.1).
SOURCE = [[5, 9, 7, EOS, PAD, PAD], [8, 8, 12, 11, 30, EOS], [6, EOS, PAD, PAD, PAD, PAD]]
LIMITS = [9, 4, 12]


@pytest.fixture(scope="module")
def model():
    model = Transformer(vocabulary_size=40, num_layers=1, d_model=16, d_ff=32, num_heads=4)
    generator = np.random.default_rng(3)
    for weight in sorted(model.weights, key=lambda weight: weight.path):
        weight.assign(generator.normal(size=weight.shape) / 3)
    return model


def test_token_log_probabilities_are_the_log_softmax_of_float64_and_0_for_padding():
    logits = np.random.default_rng(0).normal(size=(2, 3, 7)).astype("float32")
    ids = np.array([[4, 6, 3], [5, 3, 0]])
    exact = logits.astype("float64")
    exact -= np.log(np.exp(exact).sum(axis=-1, keepdims=True))
    expected = np.take_along_axis(exact, ids[..., None], axis=-1)[..., 0] * (ids != 0)
    log_probabilities = token_log_probabilities(tf.constant(logits), tf.constant(ids))
    np.testing.assert_allclose(log_probabilities, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("search", "alpha"),
    [(GreedySearch(), 0.0), (BeamSearch(4, 0.6, 4), 0.6), (BeamSearch(3, 0.0, 2), 0.0)],
    ids=["greedy", "beam", "sum"],
)
def test_a_search_scores_its_translations_as_the_model_does(model, search, alpha):
    source = tf.constant(SOURCE)
    ids, scores = search(model.stepper(), model.encode(source), tf.constant(LIMITS))
    for n in range(ids.shape[1]):
        target = ids[:, n]
        shifted = tf.concat([tf.fill([len(SOURCE), 1], BOS), target[:, :-1]], axis=1)
        log_probabilities = token_log_probabilities(
            model((source, shifted), training=False), target
        )
        lengths = tf.math.count_nonzero(target, axis=1, dtype=tf.int32)
        rescored = tf.reduce_sum(log_probabilities, axis=1) / length_penalty(lengths, alpha)
        np.testing.assert_allclose(rescored, scores[:, n], rtol=1e-5, atol=1e-5)
    assert len(set(tf.math.count_nonzero(ids[:, 0], axis=1).numpy())) > 1
