"""Batches: every pair, aligned, in full batches of a few shapes, in an order that the seed decides."""

import collections
import itertools
import types

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.batching import TokenizedPairs, evaluation_batches, tokenize_pairs, training_batches
from pipelines.corpora.parallel_text import ParallelText
from pipelines.vocabulary import BOS, EOS

WORDS = types.SimpleNamespace(
    tokenize=lambda text: tf.concat([tf.strings.to_number(tf.strings.split(text), tf.int32), tf.fill([len(text), 1], EOS)], axis=1)
)
LENGTHS = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=25)
BUDGET = 24


def pairs_of(lengths):
    """Pair i is 100 + i and words after it, on the left; 100 + i and other words, on the right."""
    sources = [[100 + i, *range(10, 9 + source)] for i, (source, _) in enumerate(lengths)]
    targets = [[100 + i, *range(50, 49 + target)] for i, (_, target) in enumerate(lengths)]
    return TokenizedPairs(*(tf.ragged.constant(side, tf.int32) for side in (sources, targets)), too_long=0)


@pytest.fixture(scope="module")
def pairs():
    return pairs_of(np.random.default_rng(0).integers(1, 13, (60, 2)).tolist())


def numpy_batches(dataset, count=None):
    batches = itertools.islice(dataset.as_numpy_iterator(), count)
    return [(source, target_input, output) for (source, target_input), output in batches]


def numbers(batches):
    """Which pairs a stream holds, batch by batch."""
    return [(output[:, 0] - 100).tolist() for _, _, output in batches]


def assert_holds_its_pairs(batch, pairs):
    for source, target_input, output in zip(*batch, strict=True):
        number = output[0] - 100
        for row, side in ((source, pairs.sources), (output, pairs.targets)):
            expected = side[number].numpy()
            assert row[: len(expected)].tolist() == expected.tolist()
            assert not row[len(expected) :].any()
        assert target_input.tolist() == [BOS, *output[:-1]]


@settings(max_examples=8, deadline=None)
@given(LENGTHS, st.integers(0, 100))
def test_pairs_stay_aligned_padded_with_0_and_shifted_behind_bos(lengths, seed):
    pairs = pairs_of(lengths)
    for batch in numpy_batches(training_batches(pairs, BUDGET, seed)[0], 10) + numpy_batches(evaluation_batches(pairs, BUDGET)):
        assert_holds_its_pairs(batch, pairs)
        assert {side.dtype for side in batch} == {np.dtype("int32")}


def test_every_training_batch_is_full_and_of_a_known_shape(pairs):
    dataset, buckets = training_batches(pairs, BUDGET, seed=1)
    shapes = set(zip(buckets.batch_sizes, buckets.source_lengths, buckets.target_lengths, strict=True))
    seen = {(*source.shape, target_input.shape[1]) for source, target_input, _ in numpy_batches(dataset, 400)}
    assert seen == shapes
    assert all(size * max(source, target) <= BUDGET for size, source, target in shapes)


def test_every_pair_comes_once_an_epoch_but_for_what_waits_for_a_full_batch(pairs):
    """The pairs of a bucket come in one order after another; and no bucket is ahead of the rest by more than a batch and an epoch."""
    dataset, buckets = training_batches(pairs, BUDGET, seed=1)
    streams = collections.defaultdict(list)
    for batch in numbers(numpy_batches(dataset, 20 * buckets.steps_per_epoch)):
        streams[buckets.bucket_of[batch[0]]] += batch
    epochs = []
    for bucket, stream in streams.items():
        members = set(np.flatnonzero(buckets.bucket_of == bucket))
        orders = [stream[start : start + len(members)] for start in range(0, len(stream), len(members))]
        assert all(set(order) == members for order in orders[:-1])
        assert len(set(orders[-1])) == len(orders[-1])
        epochs.append((len(stream) / len(members), (len(stream) + buckets.batch_sizes[bucket] - 1) / len(members)))
    assert len(streams) == len(buckets.batch_sizes)
    assert max(least for least, _ in epochs) <= min(most for _, most in epochs) + 1


def test_the_seed_decides_the_order(pairs):
    first, again, other = (numbers(numpy_batches(training_batches(pairs, BUDGET, seed)[0], 50)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_each_epoch_has_an_order_of_its_own():
    dataset, _ = training_batches(pairs_of([(12, 12)] * 20), batch_tokens=12, seed=1)
    order = [number for [number] in numbers(numpy_batches(dataset, 40))]
    assert sorted(order[:20]) == sorted(order[20:]) == list(range(20))
    assert order[:20] != order[20:] != sorted(order)


@pytest.mark.parametrize("skip", [1, 7, 100])
def test_skipping_goes_on_where_an_interrupted_run_stopped(pairs, skip):
    whole = numpy_batches(training_batches(pairs, BUDGET, seed=3)[0], skip + 20)
    rest = numpy_batches(training_batches(pairs, BUDGET, seed=3, skip=skip)[0], 20)
    for expected, batch in zip(whole[skip:], rest, strict=True):
        for left, right in zip(expected, batch, strict=True):
            np.testing.assert_array_equal(left, right)


@settings(max_examples=8, deadline=None)
@given(LENGTHS)
def test_evaluation_sees_every_pair_once_in_as_many_batches_as_it_says(lengths):
    dataset = evaluation_batches(pairs_of(lengths), BUDGET)
    batches = numbers(numpy_batches(dataset))
    assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
    assert len(batches) == int(dataset.cardinality())


def test_pairs_over_the_limit_on_either_side_are_dropped_and_counted():
    text = ParallelText(["5 6", "5 6 7", "5", "8 9"], ["7 8", "5", "5 6 7", ""])
    pairs = tokenize_pairs(text, WORDS, max_length=3)
    assert pairs.sources.to_list() == [[5, 6, EOS], [8, 9, EOS]]
    assert pairs.targets.to_list() == [[7, 8, EOS], [EOS]]
    assert (len(pairs), pairs.too_long) == (2, 2)


def test_without_a_limit_every_pair_stays():
    text = ParallelText(["5 " * 50, "5"], ["6", "7 " * 300])
    pairs = tokenize_pairs(text, WORDS)
    assert (len(pairs), pairs.too_long) == (2, 0)


def test_many_lines_are_tokenized_in_parts_and_in_order(monkeypatch):
    lines = [str(number) for number in range(10, 20)]
    monkeypatch.setattr("pipelines.batching.SENTENCES_A_CALL", 3)
    assert tokenize_pairs(ParallelText(lines, lines[::-1]), WORDS).sources.to_list() == [[number, EOS] for number in range(10, 20)]
