"""Order: full batches of one bucket, every pair as often as any, the same wherever the stream is
entered and in any number of parts.
"""

import collections
import fractions
import functools
import itertools
import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from token_lists import assert_same_batches

from pipelines.batches import hidden_pieces, ordering, shifted_pictures
from pipelines.batches.batching import training_batches
from pipelines.batches.ordering import BatchOrder, permuted
from pipelines.batches.texts import TokenizedPairs, token_ids
from pipelines.corpora.images import Split
from pipelines.corpora.parallel_text import ParallelText
from pipelines.corpora.spans import SENTINELS
from pipelines.corpora.spans import cut as cut_out
from pipelines.corpora.spans_anew import SpansAnew, whole_texts
from pipelines.corpora.terms import GivenTerms, with_terms
from pipelines.random_numbers import FIRST, GOLDEN, ROUNDS, SECOND, key
from pipelines.special_ids import Marks
from pipelines.vocabularies import learn
from pipelines.vocabularies.augmentation import AugmentedText
from pipelines.vocabularies.protected_spans import ProtectedSpans
from pipelines.vocabularies.segmentation import BpeDropout
from pipelines.vocabularies.subword_regularization import SubwordRegularization
from pipelines.vocabularies.token_ids import TokenIds

EPOCHS = st.integers(0, 6)
WEIGHTS = st.sampled_from([0.25, 0.5, 0.75, 1.0, 1.5, 3.0])


@st.composite
def arguments(draw):
    """Arguments of a `BatchOrder`: few pairs; a bucket may be empty, or smaller than a batch."""
    sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    bucket_of = draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, max_size=30))
    count = len(bucket_of)
    weights = draw(st.none() | st.lists(WEIGHTS, min_size=count, max_size=count))
    seed = draw(st.integers(0, 2**40))
    return {"bucket_of": bucket_of, "batch_sizes": sizes, "seed": seed, "weights": weights}


CASES = arguments()


def walk(case, batches, start=0):
    """Batches of the stream from number `start` on: (bucket, list of pairs)."""
    if not batches:
        return []
    order = BatchOrder(**case)
    places = []
    while len(places) < batches:
        epoch, before = order.locate(start + len(places))
        of_epoch = zip(*(side.numpy().tolist() for side in order.epoch(epoch)), strict=True)
        places += list(of_epoch)[before:]
    buckets, begins = np.array(places[:batches]).reshape(-1, 2).T
    sizes = np.array(case["batch_sizes"])[buckets]
    of_batch = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(of_batch)) - (np.cumsum(sizes) - sizes)[of_batch]
    pairs = order.examples(buckets[of_batch], begins[of_batch] + within).numpy()
    parts = np.split(pairs, np.cumsum(sizes)[:-1])
    return [(bucket, part.tolist()) for bucket, part in zip(buckets.tolist(), parts, strict=True)]


def classes(case):
    """(bucket, weight) -> its pairs."""
    pairs = collections.defaultdict(list)
    weights = case["weights"] or [1] * len(case["bucket_of"])
    for pair, place in enumerate(zip(case["bucket_of"], weights, strict=True)):
        pairs[place].append(pair)
    return pairs


def pairs_due(case, epochs):
    """Per bucket, how many pairs have come after so many epochs, including those that wait for a
    full batch.
    """
    due = [0] * len(case["batch_sizes"])
    for (bucket, weight), members in classes(case).items():
        due[bucket] += math.floor(fractions.Fraction(weight) * len(members) * epochs)
    return due


def batches_due(case, epochs):
    """Per bucket, how many batches are full after so many epochs."""
    pairs = zip(pairs_due(case, epochs), case["batch_sizes"], strict=True)
    return [due // size for due, size in pairs]


@settings(max_examples=15)
@given(CASES, st.integers(1, 9), st.integers(10**9, 10**10))
def test_every_batch_is_full_of_one_bucket_and_the_same_wherever_the_stream_is_entered(
    case, number, far
):
    """Also at a batch that no replay would reach: the stream is entered there at once."""
    stream = walk(case, 12)
    assert walk(case, 3, start=number) == stream[number : number + 3]
    for bucket, pairs in [*stream, *walk(case, 1, start=far)]:
        assert len(pairs) == case["batch_sizes"][bucket]
        assert {case["bucket_of"][pair] for pair in pairs} == {bucket}


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(1, 7))
def test_streams_are_sorted_part_by_part_as_at_once(stream_of, rows_at_once):
    stream_of = np.array(stream_of, np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "ROWS", rows_at_once)
        counts, rows = ordering.by_stream(stream_of, 6)
    assert counts.tolist() == np.bincount(stream_of, minlength=6).tolist()
    assert rows.numpy().tolist() == np.argsort(stream_of, kind="stable").tolist()


@given(CASES)
def test_batches_an_epoch_are_counted_as_by_hand(case):
    pairs = (
        (bucket, fractions.Fraction(weight) * len(members))
        for (bucket, weight), members in classes(case).items()
    )
    expected = sum(due / case["batch_sizes"][bucket] for bucket, due in pairs)
    assert BatchOrder(**case).batches_per_epoch == pytest.approx(float(expected))


@settings(max_examples=15)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.integers(1, 9), st.integers(0, 100))
def test_a_bucket_comes_in_one_order_of_all_its_pairs_after_another(members, size, seed):
    bucket_of = np.repeat(np.arange(len(members)), members).tolist()
    streams = collections.defaultdict(list)
    case = {"bucket_of": bucket_of, "batch_sizes": [size] * len(members), "seed": seed}
    for bucket, pairs in walk(case, 12):
        streams[bucket] += pairs
    for bucket, stream in streams.items():
        count = members[bucket]
        laps = [stream[start : start + count] for start in range(0, len(stream), count)]
        everyone = np.flatnonzero(np.equal(bucket_of, bucket)).tolist()
        assert all(sorted(lap) == everyone for lap in laps[:-1])
        assert len(set(laps[-1])) == len(laps[-1])


def test_seeds_laps_and_buckets_have_orders_of_their_own():
    """20 pairs in batches of 20: each batch is a lap."""
    case = {"bucket_of": [0] * 20 + [1] * 20, "batch_sizes": [20, 20]}
    batches = [batch for seed in (1, 2) for batch in walk({**case, "seed": seed}, 10)]
    laps = {tuple(pair - 20 * bucket for pair in pairs) for bucket, pairs in batches}
    assert all(sorted(lap) == [*range(20)] for lap in laps)
    assert len(laps) == 20


def test_batches_are_mixed_anew_in_each_epoch():
    case = {"bucket_of": [0] * 20 + [1] * 20, "batch_sizes": [1, 1], "seed": 1}
    buckets = [bucket for bucket, _ in walk(case, 80)]
    first, second = buckets[:40], buckets[40:]
    assert sorted(first) == sorted(second) == [0] * 20 + [1] * 20
    assert first != second
    assert first != sorted(first)


@settings(max_examples=15)
@given(CASES, EPOCHS)
def test_pairs_come_by_weight_and_no_bucket_lags(case, epochs):
    """A pair comes floor or ceiling of weight times epochs, unless it waits for a full batch. After
    whole epochs each bucket has given all the batches that its pairs fill.
    """
    full = batches_due(case, epochs)
    walked = walk(case, sum(full))
    buckets = collections.Counter(bucket for bucket, _ in walked)
    assert [buckets[bucket] for bucket in range(len(full))] == full
    counts = collections.Counter(itertools.chain(*(pairs for _, pairs in walked)))
    sizes = zip(pairs_due(case, epochs), full, case["batch_sizes"], strict=True)
    waiting = [pairs - batches * size for pairs, batches, size in sizes]
    for (bucket, weight), members in classes(case).items():
        due = fractions.Fraction(weight) * epochs
        assert max(counts[pair] for pair in members) <= math.ceil(due)
        waiting[bucket] -= sum(max(0, math.floor(due) - counts[pair]) for pair in members)
    assert min(waiting) >= 0


def test_pairs_of_different_weight_are_mixed():
    """An epoch as one batch, 20 pairs once and 20 twice: neither kind is first."""
    case = {"bucket_of": [0] * 40, "batch_sizes": [60], "seed": 1}
    case["weights"] = [1.0] * 20 + [2.0] * 20
    [(_, pairs)] = walk(case, 1)
    assert collections.Counter(pairs) == {pair: 1 if pair < 20 else 2 for pair in range(40)}
    assert 5 <= sum(pair < 20 for pair in pairs[:30]) <= 15


# Permutations, place by place: all things come once, in orders like random ones, as in Python.
WORD = 2**64


def mix(number):
    number = (number ^ number >> 30) * FIRST % WORD
    number = (number ^ number >> 27) * SECOND % WORD
    return number ^ number >> 31


def by_hand(place, size, key):
    """Swap or not, of one place, in Python's integers."""
    for number in range(1, ROUNDS + 1):
        round_key = mix((key + GOLDEN * number) % WORD)
        partner = (mix(round_key) % size - place) % size
        if mix((max(place, partner) + round_key) % WORD) >= WORD // 2:
            place = partner
    return place


def whole(size, keys, shuffle=permuted):
    """A permutation of 0 .. size-1 for each key, (keys, size)."""
    places = tf.tile(tf.range(size, dtype=tf.int64), [len(keys)])
    sizes = tf.fill([len(places)], tf.constant(size, tf.int64))
    return shuffle(places, sizes, tf.repeat(keys, size)).numpy().reshape(-1, size)


def rotated(places, sizes, keys):
    """The control: a key moves all things by the same number of places, which keeps their order."""
    return (places + tf.cast(keys % tf.cast(sizes, tf.uint64), tf.int64)) % sizes


@settings(max_examples=30)
@given(st.integers(1, 2**40), st.integers(0, WORD - 1), st.data())
def test_permuted_is_swap_or_not_as_restated_in_python(size, key, data):
    places = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=5))
    moved = permuted(
        tf.constant(places, tf.int64), tf.constant(size, tf.int64), tf.constant(key, tf.uint64)
    )
    assert moved.numpy().tolist() == [by_hand(place, size, key) for place in places]


@settings(max_examples=30)
@given(st.lists(st.integers(0, 2**63 - 1), max_size=3), st.integers(0, 2**70))
def test_a_key_is_the_seed_mixed_with_each_number(numbers, seed):
    [expected] = np.random.SeedSequence(seed).generate_state(1, np.uint64).tolist()
    for number in numbers:
        expected = mix((expected + GOLDEN * (number + 1)) % WORD)
    tensors = [tf.constant(number, tf.int64) for number in numbers]
    assert int(key(seed, *tensors)) == expected


@settings(max_examples=30)
@given(st.integers(1, 300), st.integers(0, WORD - 1))
def test_every_thing_comes_once(size, key):
    [order] = whole(size, tf.constant([key], tf.uint64))
    assert sorted(order) == list(range(size))


def excess(counts):
    """How far counts are from equal, in standard deviations of chi-squared."""
    counts = np.asarray(counts, float).ravel()
    degrees = len(counts) - 1
    chi_squared = ((counts - counts.mean()) ** 2).sum() / counts.mean()
    return (chi_squared - degrees) / np.sqrt(2 * degrees)


def unlike_random(shuffle, keys, number=6000):
    """How far permutations of 4 and of 97 things by many keys are from random ones."""
    small = collections.Counter(map(tuple, whole(4, keys[:number], shuffle)))
    orders = whole(97, keys[: number // 10], shuffle)
    steps = np.bincount((np.diff(orders, axis=1) % 97).ravel(), minlength=97)[1:]
    fixed = (orders == np.arange(97)).sum(axis=1).mean()
    return {
        "distinct": number // 10 - len({tuple(order) for order in orders}),
        "orders of 4": excess([small[order] for order in itertools.permutations(range(4))]),
        "steps": excess(steps),
        "fixed": abs(fixed - 1) * np.sqrt(number // 10),
    }


def test_permutations_of_keys_that_count_are_like_random_ones():
    keys = key(7, tf.range(6000, dtype=tf.int64))
    distances = unlike_random(permuted, keys)
    assert distances.pop("distinct") == 0
    assert max(distances.values()) < 4, distances


def test_control_rotations_are_unlike_random_ones():
    keys = tf.cast(tf.range(600), tf.uint64)
    distances = unlike_random(rotated, keys, number=600)
    assert any(distances[name] > 4 for name in ("fixed", "steps", "orders of 4")), distances


def test_neighbours_are_separated():
    """Of 20,000 things about 4 keep a neighbour within two places of them."""
    [order] = whole(20_000, tf.constant([3], tf.uint64))
    assert (np.abs(np.diff(order)) <= 2).sum() < 20
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 4 / np.sqrt(20_000)


SOURCES = ["turn off the lights, please!", "the house is big", "a lamp is in the kitchen"]
TARGETS = ["schalte bitte die Lichter aus!", "das Haus ist groß", "eine Lampe ist in der Küche"]
TEXT = ParallelText(SOURCES * 3, TARGETS * 3)
PROTECTED = ProtectedSpans(("tags",), glossary_rate=0.1)
RANDOM = np.random.default_rng(0)
PICTURES = Split(RANDOM.integers(1, 256, (40, 5, 4, 2), np.uint8), np.arange(40) % 3)
# A first, a last and a hiding piece, in place of a vocabulary.
MARKS = Marks(2, 3, 4, "<mask>", np.arange(5, 105), None)
LENGTHS = np.arange(2, 31)
IDS = np.concatenate([[*RANDOM.integers(5, 105, length - 1), 3] for length in LENGTHS])


@functools.cache
def cut(kind="bpe"):
    """A vocabulary of the text, and the pairs."""
    size = 380 if kind == "bpe" else 330
    words = learn(TEXT.sources, TEXT.targets, "joint", size, (), kind, PROTECTED)
    return words, [token_ids(side, words) for side in (TEXT.sources, TEXT.targets)]


def plain(seed):
    return TokenizedPairs(*cut()[1]).examples()


def segmented(kind, segmentation, seed):
    words, sides = cut(kind)
    sampler = segmentation(words, 0.3, seed)
    return TokenizedPairs(*sides).examples({"source": sampler, "target": sampler})


def typed(seed):
    words, sides = cut()
    slips = AugmentedText(words, {"case": 0.5, "typos": 0.2}, seed, 1000)
    return TokenizedPairs(*sides).examples({"source": slips})


def with_given_terms(seed):
    words, sides = cut()
    sources = token_ids([*with_terms(TEXT, 1, ())], words)
    terms = GivenTerms(0.5, seed, sources, 1000, None)
    return TokenizedPairs(*sides).examples({"source": terms})


def with_spans(seed):
    texts = tf.constant(SOURCES * 3)
    both = cut_out(texts, key(1, np.arange(9)))
    sides = [[text.decode() for text in side.numpy()] for side in both]
    words = learn(*sides, "joint", 350, SENTINELS)
    wholes = whole_texts(ParallelText(*sides), ())
    both = enumerate(("source", "target"))
    anew = {name: SpansAnew(side, wholes, words, 100, seed) for side, name in both}
    return TokenizedPairs(*(token_ids(side, words) for side in sides)).examples(anew)


def hidden(seed):
    texts = TokenIds.of_lengths(IDS.astype(np.uint16), LENGTHS)
    return hidden_pieces.examples(texts, MARKS, hidden_pieces.Masking(MARKS, 105), seed)


def shifted(seed):
    return shifted_pictures.examples(PICTURES, positions=2, most=1, seed=seed)


KINDS = {
    "pairs": (plain, 80),
    "byte pairs that are left out": (functools.partial(segmented, "bpe", BpeDropout), 80),
    "sampled segmentations": (functools.partial(segmented, "unigram", SubwordRegularization), 80),
    "sources as people type them": (typed, 80),
    "terms with their translations": (with_given_terms, 80),
    "spans cut out anew": (with_spans, 80),
    "hidden pieces": (hidden, 100),
    "shifted pictures": (shifted, 20),
}


def read(iterator, count):
    return [tf.nest.flatten(batch) for batch in itertools.islice(iterator, count)]


def batches_of(kind, seed=3, parts=1):
    make, tokens = KINDS[kind]
    return training_batches(make(seed), tokens, seed=5, parts=parts)


@functools.cache
def first(kind):
    """The stream from its beginning, of more than an epoch."""
    batches = batches_of(kind)
    assert batches.updates_per_epoch < 7
    return read(batches.arrays(), 12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_is_the_same_wherever_it_is_entered(kind):
    later = batches_of(kind).dataset(7).as_numpy_iterator()
    assert_same_batches(read(later, 5), first(kind)[7:])


def joined(parts):
    """Inputs and labels of several batches as one; texts are as wide as the widest."""
    for column in zip(*((part[0], part[-2]) for part in parts), strict=True):
        if column[0].ndim == 2:
            width = max(array.shape[1] for array in column)
            column = [np.pad(array, [(0, 0), (0, width - array.shape[1])]) for array in column]
        yield np.concatenate(column)


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_is_the_same_in_any_number_of_parts(kind):
    """So no random number depends on the other examples of a batch."""
    parts = read(batches_of(kind, parts=2).arrays(10), 6)
    whole = [(batch[0], batch[-2]) for batch in first(kind)[5:8]]
    assert_same_batches([joined(parts[at : at + 2]) for at in (0, 2, 4)], whole)


# The other kinds have this control in tests/pipelines.
@pytest.mark.parametrize(
    "kind", ["sources as people type them", "terms with their translations", "shifted pictures"]
)
def test_control_another_seed_draws_otherwise(kind):
    batches = read(batches_of(kind, seed=4).arrays(), 12)
    with pytest.raises(AssertionError):
        assert_same_batches(batches, first(kind))
