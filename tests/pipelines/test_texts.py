"""Pairs and lines as ids: long ones are dropped or cut, pieces counted, and batches made."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from token_lists import complaint, listed, packed

from pipelines.batches import texts
from pipelines.batches.batching import training_batches
from pipelines.batches.examples import Examples, padded
from pipelines.batches.texts import TokenizedPairs, cooccurrences
from pipelines.special_ids import BOS, EOS
from pipelines.vocabularies.token_ids import ALIGNMENT, TokenIds
from pipelines.vocabularies.vocabulary import learn

SIDE = st.lists(st.integers(4, 99), min_size=1, max_size=9)
PAIRS = st.lists(st.tuples(SIDE, SIDE), max_size=12)


def packed_pairs(pairs, too_long=0):
    return TokenizedPairs(*(packed([pair[side] for pair in pairs]) for side in range(2)), too_long)


@given(PAIRS, st.integers(0, 10), st.integers(0, 5))
def test_pairs_with_a_side_over_the_limit_are_dropped_whole_and_counted(pairs, limit, before):
    whole = packed_pairs(pairs, before)
    short = whole.up_to(limit)
    expected = [pair for pair in pairs if max(map(len, pair)) <= limit]
    assert [*zip(listed(short.sources), listed(short.targets), strict=True)] == expected
    assert len(short) == len(expected)
    assert short.too_long == before + len(pairs) - len(expected)
    # Where no pair is dropped, nothing is copied.
    assert (short is whole) == (pairs == expected)


def test_weights_of_dropped_pairs_are_dropped_too():
    pairs = packed_pairs([([4], [4]), ([4] * 9, [4]), ([4], [4] * 3)])
    weights = np.arange(3.0)
    assert pairs.up_to(5).of_those_kept(weights).tolist() == [0.0, 2.0]
    assert pairs.up_to(9).of_those_kept(weights).tolist() == [0.0, 1.0, 2.0]
    assert pairs.up_to(5).of_those_kept(None) is None


LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=20)


@given(LENGTHS, st.integers(1, 20))
def test_only_the_last_piece_of_a_text_that_is_cut_is_short(lengths, most):
    lengths = np.array(lengths)
    pieces = texts.cut(lengths, most)
    expected = [min(most, length - start) for length in lengths for start in range(0, length, most)]
    assert pieces.tolist() == expected


def test_every_piece_of_a_line_is_kept_in_order():
    lines = ["two dogs run", "a", "a dog runs after two dogs and runs"]
    vocabulary = learn(lines * 20, 280)
    whole = texts.tokenized(lines, vocabulary, 100)
    short = texts.tokenized(lines, vocabulary, 4)
    assert len(whole) == len(lines) < len(short)
    assert short.lengths.max() == 4
    np.testing.assert_array_equal(short.flat, whole.flat)
    assert (whole.flat == EOS).sum() == len(lines)


def test_a_batch_is_the_text_and_the_text_shifted_behind_its_start():
    ids = TokenIds.of_lengths(np.array([7, 8, EOS, 9, EOS], np.uint16), [3, 2])
    batch = texts.examples(ids).batch(tf.constant([1, 0], tf.int64), [3])
    read, text, weights = (part.numpy() for part in batch)
    assert text.tolist() == [[9, EOS, 0], [7, 8, EOS]]
    assert read.tolist() == [[BOS, 9, EOS], [BOS, 7, 8]]
    assert weights.tolist() == [[1, 1, 0], [1, 1, 1]]


V = 12
SENTENCES = st.lists(st.lists(st.integers(0, V - 1), max_size=7), min_size=1, max_size=6)


def counted(sources, targets):
    """`cooccurrences` by its definition, in float64."""
    counts = np.zeros((V, V))
    for source, target in zip(sources, targets, strict=True):
        pieces = {*source, *target}
        for i, j in itertools.permutations(pieces, 2):
            counts[i, j] += 1 / len(pieces)
    return counts


@given(SENTENCES, SENTENCES)
def test_counts_are_those_of_the_definition(sources, targets):
    length = min(len(sources), len(targets))
    sources, targets = sources[:length], targets[:length]
    counts = cooccurrences((packed(sources), packed(targets)), (0, 0), V)
    np.testing.assert_allclose(counts, counted(sources, targets), rtol=1e-5, atol=1e-6)


def test_of_a_large_corpus_pairs_of_all_parts_are_counted(monkeypatch):
    sides = packed([[1, 2], [3, 4], [1, 4]]), packed([[5], [6], [7]])
    monkeypatch.setattr(texts, "MOST_PAIRS", 2)
    counts = cooccurrences(sides, (0, 0), V)
    np.testing.assert_allclose(counts, counted([[1, 2], [1, 4]], [[5], [7]]), rtol=1e-6)
    assert counts[3, 4] == 0


def test_pieces_of_two_vocabularies_are_counted_apart():
    counts = cooccurrences((packed([[1, 2]]), packed([[1, 3]])), (0, V), V)
    assert counts.shape == (2 * V, 2 * V)
    assert counts[1, V + 3] == counts[2, V + 1] == counts[1, V + 1] == pytest.approx(1 / 4)
    assert np.count_nonzero(counts) == 4 * 3


def test_too_many_pieces_are_refused():
    with pytest.raises(ValueError, match=r"at most 16,000 pieces\. Received: 16,001\. Pass"):
        cooccurrences((packed([[1]]), packed([[1]])), (0, 8000), 8001)


# Packed ids: two arrays that stand for a list of lists.
PACKED = st.lists(st.lists(st.integers(0, 2**16 - 1), max_size=8), max_size=12)
DTYPES = st.sampled_from([np.uint16, np.int32])


@given(PACKED, DTYPES)
def test_packing_loses_nothing(sentences, dtype):
    ids = packed(sentences, dtype)
    assert listed(ids) == [ids[number].tolist() for number in range(len(ids))] == sentences
    assert ids.lengths.tolist() == [len(sentence) for sentence in sentences]
    assert ids.flat.dtype == dtype


@pytest.mark.parametrize("lengths", [[], [2], [2, 2], [4]])
def test_lengths_that_do_not_add_up_to_the_ids_are_refused(lengths):
    expected = "`lengths` must add up to the 3 ids of `flat`. Received: a sum of {}."
    message = complaint(ValueError, TokenIds.of_lengths, np.array([5, 6, 7]), lengths)
    assert message == expected.format(sum(lengths))


@given(st.lists(st.tuples(PACKED, DTYPES), min_size=1, max_size=4))
def test_joined_parts_are_joined_lists(parts):
    joined = TokenIds.concatenate(packed(*part) for part in parts)
    assert listed(joined) == [*itertools.chain(*(sentences for sentences, _ in parts))]
    assert joined.flat.dtype == np.result_type(*(dtype for _, dtype in parts))


@given(PACKED, DTYPES, st.data())
def test_selected_sentences_are_those_of_the_list(sentences, dtype, data):
    keep = data.draw(st.lists(st.booleans(), min_size=len(sentences), max_size=len(sentences)))
    selected = packed(sentences, dtype).where(np.array(keep, bool))
    assert listed(selected) == [*itertools.compress(sentences, keep)]
    assert selected.flat.dtype == dtype


@given(st.lists(PACKED.map(lambda sentences: [[5], *sentences]), min_size=1, max_size=3), DTYPES)
def test_memory_begins_where_tensorflow_needs_not_copy_it(parts, dtype):
    joined = TokenIds.concatenate(packed(part, dtype) for part in parts)
    for ids in (joined, joined.where(joined.lengths > 0)):
        assert ids.flat.ctypes.data % ALIGNMENT == ids.starts.ctypes.data % ALIGNMENT == 0


# Examples in columns: rectangles hold their rows, and examples of other tasks make batches too.
ROWS = st.lists(st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=8), min_size=1)


@settings(max_examples=50)
@given(ROWS, DTYPES, st.data())
def test_a_rectangle_holds_its_rows_and_zeros_behind_them(sentences, dtype, data):
    rows = data.draw(st.lists(st.integers(0, len(sentences) - 1), min_size=1))
    length = max(len(sentences[row]) for row in rows) + data.draw(st.integers(0, 5))
    ids = packed(sentences, dtype)
    rectangle = padded(ids.flat, ids.starts, tf.constant(rows, tf.int64), length).numpy()
    expected = [sentences[row] + [0] * (length - len(sentences[row])) for row in rows]
    assert rectangle.tolist() == expected
    assert (rectangle.shape, rectangle.dtype) == ((len(rows), length), np.int32)


def test_text_and_a_number_beside_it_stay_together():
    """One ragged side: sentence i is i times the id 100 + i, its number i."""
    sentences = [[100 + i] * i for i in range(1, 13)]

    def to_batch(columns):
        text = columns["text"]
        return text, columns["number"], tf.cast(text != 0, tf.float32)

    examples = Examples({"text": packed(sentences)}, {"number": np.arange(1, 13)}, to_batch)
    batches = training_batches(examples, batch_tokens=24, seed=1, most_padding=0)
    assert batches.buckets.lengths.shape[1] == 1
    for text, numbers, weights in batches.dataset().take(20).as_numpy_iterator():
        bucket = batches.buckets.lengths[:, 0].tolist().index(text.shape[1])
        assert len(text) == batches.buckets.batch_sizes[bucket]
        for row, number, weight in zip(text, numbers, weights, strict=True):
            assert row.tolist() == [100 + number] * number + [0] * (len(row) - number)
            assert weight.sum() == number


@pytest.mark.parametrize(
    ("ragged", "fixed", "received"),
    [({"a": packed([[1], [2]])}, {"b": np.zeros(3)}, "a 2, b 3"), ({}, {}, "no column")],
)
def test_columns_of_different_lengths_are_refused(ragged, fixed, received):
    with pytest.raises(ValueError, match=rf"^Columns must .* Received: {received}\. Pass columns"):
        Examples(ragged, fixed, dict)
