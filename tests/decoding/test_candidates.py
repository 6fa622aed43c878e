"""The arithmetic of one decoding step, against NumPy float64 and a plain sort."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.decoding.candidates import (
    BLOCK,
    FREE,
    best_tokens,
    log_normalizer,
    possible_tokens,
)
from pipelines.special_ids import BOS, EOS, PAD, UNK

WIDTHS = [4, 5, 63, 64, 65, 300, 640]


def random_logits(seed, rows, width, levels=None):
    random = np.random.default_rng(seed)
    return (
        random.integers(0, levels, (rows, width))
        if levels
        else 5 * random.normal(size=(rows, width))
    ).astype("float32")


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
    np.testing.assert_allclose(
        log_normalizer(tf.constant([[1e4] * 8, [-1e4] * 8])),
        [1e4 + np.log(8), -1e4 + np.log(8)],
        rtol=1e-6,
    )


@pytest.mark.parametrize("width", [*WIDTHS, 7, 8000, 37000])
def test_no_bit_of_a_normalizer_depends_on_company(width):
    logits = random_logits(1, 67, width)
    together = log_normalizer(tf.constant(logits)).numpy()
    for row in range(0, 67, 5):
        np.testing.assert_array_equal(
            log_normalizer(tf.constant(logits[row : row + 1])), together[row : row + 1]
        )
    np.testing.assert_array_equal(log_normalizer(tf.constant(logits[::-1].copy())), together[::-1])
    np.testing.assert_array_equal(log_normalizer(tf.constant(logits[3:41])), together[3:41])


@settings(max_examples=20, deadline=None)
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


def test_control_blocks_in_the_order_of_their_maxima_would_put_higher_ids_first(monkeypatch):
    logits = np.zeros((1, 3 * BLOCK), "float32")
    logits[0, [BLOCK - 1, 2 * BLOCK]] = 1.0, 2.0
    _, ids = best_tokens(tf.constant(logits), 3, tf.constant([FREE]))
    assert ids.numpy().tolist() == [[2 * BLOCK, BLOCK - 1, 1]]
    monkeypatch.setattr(tf, "sort", lambda values, axis: values)
    _, ids = best_tokens(tf.constant(logits), 3, tf.constant([FREE]))
    assert ids.numpy().tolist() != [[2 * BLOCK, BLOCK - 1, 1]]
