"""Batches: every pair, aligned, in full batches of a few shapes, in an order that the seed decides,
on any number of replicas.
"""

import collections
import itertools
import re
import types

import numpy as np
import pytest
import tensorflow as tf
from token_lists import assert_same_batches, listed, packed

from pipelines.batches import batching
from pipelines.batches.texts import TokenizedPairs, tokenize_pairs
from pipelines.corpora.parallel_text import ParallelText
from pipelines.special_ids import BOS, EOS

LENGTHS = np.random.default_rng(0).integers(1, 13, (60, 2)).tolist()
BUDGET = 24
UPDATE = 96  # more than six pairs


def numbers_as_words(size):
    """A vocabulary: the id of a word is the number that it spells."""

    def tokenize(text):
        return tf.concat(
            [tf.strings.to_number(tf.strings.split(text), tf.int32), tf.fill([len(text), 1], EOS)],
            axis=1,
        )

    words = types.SimpleNamespace(size=size, tokenize=tokenize)
    return types.SimpleNamespace(source=words, target=words)


WORDS = numbers_as_words(100)


def training_batches(pairs, *args, **kwargs):
    return batching.training_batches(pairs.examples(), *args, **kwargs)


def evaluation_batches(pairs, batch_tokens):
    return batching.evaluation_batches(pairs.examples(), batch_tokens)


def pairs_of(lengths):
    """Pairs of these lengths: both sides of pair i begin with 100 + i; their words differ."""

    def side(number, first_word):
        counts = enumerate(pair[number] for pair in lengths)
        return packed([100 + i, *range(first_word, first_word - 1 + count)] for i, count in counts)

    return TokenizedPairs(side(0, 10), side(1, 50))


@pytest.fixture(scope="module")
def pairs():
    return pairs_of(LENGTHS)


@pytest.fixture(scope="module")
def batches(pairs):
    return training_batches(pairs, BUDGET, seed=1)


@pytest.fixture(scope="module")
def stream(batches):
    """The first batches of seed 1, of 20 epochs and more; not to be changed."""
    return flat_batches(batches.arrays(), 500)


def flat_batches(batches, count=None):
    """The first batches of a dataset or of an iterator of arrays, as flat tuples."""
    iterator = batches.as_numpy_iterator() if isinstance(batches, tf.data.Dataset) else batches
    return [
        (source, target_input, output, weights)
        for (source, target_input), output, weights in itertools.islice(iterator, count)
    ]


def numbers(batches):
    """Which pairs a stream holds, batch by batch."""
    return [(output[:, 0] - 100).tolist() for _, _, output, _ in batches]


def assert_holds_its_pairs(batch, pairs):
    for source, target_input, output, weights in zip(*batch, strict=True):
        number = output[0] - 100
        for row, side in ((source, pairs.sources), (output, pairs.targets)):
            expected = side[number]
            assert row[: len(expected)].tolist() == expected.tolist()
            assert not row[len(expected) :].any()
        assert target_input.tolist() == [BOS, *output[:-1]]
        assert weights.tolist() == [1.0] * len(expected) + [0.0] * (len(output) - len(expected))


@pytest.mark.parametrize("count", [1, 60])
def test_pairs_stay_aligned_padded_with_0_and_shifted_behind_bos(stream, count):
    """Evaluation has every pair once, in order, in as many batches as its cardinality says."""
    some = pairs_of(LENGTHS[:count])
    dataset = evaluation_batches(some, BUDGET)
    evaluated = flat_batches(dataset)
    trained = stream if count == 60 else flat_batches(training_batches(some, BUDGET, 1).arrays(), 2)
    for batch in trained + evaluated:
        assert_holds_its_pairs(batch, some)
        assert [side.dtype for side in batch] == [np.int32] * 3 + [np.float32]
    evaluated_pairs = numbers(evaluated)
    assert sorted(itertools.chain(*evaluated_pairs)) == list(range(count))
    assert len(evaluated_pairs) == int(dataset.cardinality())
    assert all(batch == sorted(batch) for batch in evaluated_pairs)


@pytest.mark.parametrize("start", [0, 9])
def test_the_batches_are_those_of_the_order(batches, stream, start):
    epoch, before = batches.order.locate(start)
    places = zip(*(side.numpy() for side in batches.order.epoch(epoch)), strict=True)
    expected = []
    for bucket, begin in [*places][before : before + 5]:
        rows = begin + np.arange(batches.buckets.batch_sizes[bucket])
        expected.append(batches.order.examples(bucket, rows).numpy().tolist())
    assert numbers(stream[start : start + len(expected)]) == expected


def specs(*shape):
    """The element spec of batches whose arrays all have this shape."""
    ids = tf.TensorSpec(shape, tf.int32)
    return (ids, ids), ids, tf.TensorSpec(shape, tf.float32)


def test_datasets_know_their_shapes_and_whether_they_end(batches, pairs):
    datasets = (batches.dataset(), evaluation_batches(pairs, BUDGET))
    for dataset in datasets:
        assert dataset.element_spec == specs(None, None)
        # Then nothing waits at the end for a thread that tunes.
        assert dataset.options().autotune.enabled is False
    assert datasets[0].cardinality() == tf.data.INFINITE_CARDINALITY


def test_a_dimension_that_all_buckets_share_is_static():
    pairs = pairs_of([(12, 12)] * 20)
    assert training_batches(pairs, BUDGET, seed=1).dataset().element_spec == specs(2, 12)
    assert evaluation_batches(pairs, BUDGET).element_spec == specs(None, 12)


def test_every_training_batch_is_full_and_of_a_known_shape(batches, stream):
    buckets = zip(batches.buckets.batch_sizes, batches.buckets.lengths.tolist(), strict=True)
    shapes = {(*source.shape, target_input.shape[1]) for source, target_input, *_ in stream}
    assert shapes == {(size, *lengths) for size, lengths in buckets}
    assert all(len(batch[0]) >= 1 for batch in stream)


@pytest.mark.parametrize(
    ("lengths", "expected", "figures"),
    [
        ([(12, 12)] * 20, 10, ("10 updates", 24, 24, "1 shape, 0.0%")),
        ([(12, 12)] * 2600, 1300, ("1,300 updates", 24, 24, "1 shape, 0.0%")),
        ([(12, 12)] * 3 + [(4, 4)] * 7, 3, ("3 updates", 24, 24, "2 shapes, 0.0%")),
        ([(1, 3)], 1, ("1 update", 12, 36, "1 shape, 33.3%")),
    ],
)
def test_updates_an_epoch_are_counted_and_described_with_their_tokens(lengths, expected, figures):
    """3/2 + 7/6 updates are rounded to 3; one pair, a twelfth of an update, counts as 1."""
    batches = training_batches(pairs_of(lengths), BUDGET, seed=1)
    assert batches.updates_per_epoch == expected
    text = "{} an epoch, of {} source and {} target tokens each, in {} padding".format(*figures)
    assert batches.describe() == text


def test_the_described_tokens_are_those_of_the_stream(batches, stream):
    counts = re.findall(r"(\d+) (?:source|target)", batches.describe())
    epochs = stream[: 20 * round(batches.order.batches_per_epoch)]
    for count, side in zip(counts, (0, 2), strict=True):
        tokens = sum((batch[side] != 0).sum() for batch in epochs) / len(epochs)
        assert int(count) == pytest.approx(tokens, abs=1.0)


def replicated(batches, hosts, start, steps):
    """The batches that hosts with these numbers of replicas read, in order of steps and then of
    replicas.
    """
    streams = []
    for host, here in enumerate(hosts):
        dataset = batches.dataset(start, replicas=sum(hosts), first=sum(hosts[:host]), here=here)
        streams.append(iter(flat_batches(dataset, steps * here)))
    return [
        next(stream)
        for _ in range(steps)
        for stream, here in zip(streams, hosts, strict=True)
        for _ in range(here)
    ]


@pytest.mark.parametrize(("hosts", "parts", "steps_before"), [((1, 2, 1), 4, 5), ((1, 1), 6, 0)])
def test_replicas_read_together_what_one_replica_would(pairs, hosts, parts, steps_before):
    """The rows of an update, in their order, do not depend on how many share it, nor on how many
    batches each adds up.
    """
    whole = flat_batches(training_batches(pairs, UPDATE, seed=4).arrays(steps_before), 6)
    batches = training_batches(pairs, UPDATE, seed=4, parts=parts)
    read = replicated(batches, hosts, steps_before * parts, steps=6 * parts // sum(hosts))
    shared = [read[start : start + parts] for start in range(0, len(read), parts)]
    together = [map(np.concatenate, zip(*update, strict=True)) for update in shared]
    assert_same_batches(together, whole)
    for update in shared:
        rows = [len(batch[0]) for batch in update]
        assert max(rows) - min(rows) <= 1


@pytest.mark.parametrize("parts", [2, 3])
def test_parts_that_must_be_alike_have_equally_many_rows(pairs, parts):
    batches = flat_batches(training_batches(pairs, UPDATE, 4, parts=parts, alike=True).arrays(), 24)
    for start in range(0, 24, parts):
        assert len({len(batch[0]) for batch in batches[start : start + parts]}) == 1


def test_an_update_has_an_example_for_each_part(pairs):
    training_batches(pairs, BUDGET, seed=4, parts=2)
    with pytest.raises(ValueError, match=r"^an update must have an example for each of its 99 "):
        training_batches(pairs, BUDGET, seed=4, parts=99)


def test_pairs_of_twice_the_weight_come_twice_as_often():
    """2 epochs are 45 pairs; the last of them waits for a full batch."""
    weights = [2.0] * 5 + [1.0] * 10 + [0.5] * 5
    batches = training_batches(pairs_of([(12, 12)] * 20), BUDGET, seed=1, weights=weights)
    counts = collections.Counter(itertools.chain(*numbers(flat_batches(batches.arrays(), 45 // 2))))
    assert batches.updates_per_epoch == round(22.5 / 2)
    assert all(3 <= counts[pair] <= 4 for pair in range(5))
    assert all(1 <= counts[pair] <= 2 for pair in range(5, 15))
    assert all(0 <= counts[pair] <= 1 for pair in range(15, 20))


def test_many_lines_are_tokenized_in_parts_and_in_order(monkeypatch):
    lines = [str(number) for number in range(10, 20)]
    monkeypatch.setattr("pipelines.vocabularies.token_ids.LINES_A_CALL", 3)
    sources = tokenize_pairs(ParallelText(lines, lines[::-1]), WORDS).sources
    assert listed(sources) == [[number, EOS] for number in range(10, 20)]


@pytest.mark.parametrize(("size", "dtype"), [(2**16, np.uint16), (2**16 + 1, np.int32)])
def test_ids_take_two_bytes_where_the_vocabulary_allows(size, dtype):
    greatest = size - 1
    pairs = tokenize_pairs(ParallelText([f"{greatest} 5"], [f"{greatest}"]), numbers_as_words(size))
    expected = ([[greatest, 5, EOS]], [[greatest, EOS]])
    assert (listed(pairs.sources), listed(pairs.targets)) == expected
    assert pairs.sources.flat.dtype == pairs.targets.flat.dtype == dtype
