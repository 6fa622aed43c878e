"""Pairs and lines as ids: what is dropped, cut and counted, and what a batch of them is."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from pipelines.batches import texts
from pipelines.batches.texts import TokenizedPairs, cooccurrences
from pipelines.special_ids import BOS, EOS
from pipelines.vocabularies.token_ids import TokenIds
from pipelines.vocabularies.vocabulary import learn

PAIRS = st.lists(
    st.tuples(*[st.lists(st.integers(4, 99), min_size=1, max_size=9)] * 2), max_size=12
)


def token_ids(sentences):
    flat = np.array([*itertools.chain(*sentences)], np.uint16)
    return TokenIds.of_lengths(flat, [len(sentence) for sentence in sentences])


def listed(ids):
    return [ids[number].tolist() for number in range(len(ids))]


def packed_pairs(pairs, too_long=0):
    return TokenizedPairs(
        *(token_ids([pair[side] for pair in pairs]) for side in range(2)), too_long
    )


def listed_pairs(pairs):
    return [*zip(listed(pairs.sources), listed(pairs.targets), strict=True)]


@given(PAIRS, st.integers(0, 10), st.integers(0, 5))
def test_pairs_with_a_side_over_the_limit_are_dropped_whole_and_counted(
    pairs, limit, dropped_before
):
    kept = packed_pairs(pairs, dropped_before).up_to(limit)
    expected = [pair for pair in pairs if max(map(len, pair)) <= limit]
    assert listed_pairs(kept) == expected
    assert len(kept) == len(expected)
    assert kept.too_long == dropped_before + len(pairs) - len(expected)


@given(PAIRS, st.integers(0, 10), st.integers(0, 10))
def test_of_two_limits_the_lower_holds(pairs, first, second):
    twice, once = (
        packed_pairs(pairs).up_to(first).up_to(second),
        packed_pairs(pairs).up_to(min(first, second)),
    )
    assert (listed_pairs(twice), twice.too_long) == (listed_pairs(once), once.too_long)


def test_a_limit_that_all_pairs_keep_copies_nothing():
    pairs = packed_pairs([([5], [6, 7])])
    assert pairs.up_to(2) is pairs
    assert pairs.up_to(1) is not pairs


def test_numbers_of_pairs_that_are_left_out_go_with_them():
    pairs = packed_pairs([([4], [4]), ([4] * 9, [4]), ([4], [4] * 3)])
    weights = np.arange(3.0)
    assert pairs.up_to(5).of_those_kept(weights).tolist() == [0.0, 2.0]
    assert pairs.up_to(9).of_those_kept(weights).tolist() == [0.0, 1.0, 2.0]
    assert pairs.up_to(5).of_those_kept(None) is None


LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=20)


@given(LENGTHS, st.integers(1, 20))
def test_a_text_is_cut_into_pieces_of_which_its_last_alone_is_short(lengths, most):
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
    found = cooccurrences((token_ids(sources), token_ids(targets)), (0, 0), V)
    np.testing.assert_allclose(found, counted(sources, targets), rtol=1e-5, atol=1e-6)


def test_of_a_large_corpus_pairs_of_all_parts_are_counted(monkeypatch):
    sides = token_ids([[1, 2], [3, 4], [1, 4]]), token_ids([[5], [6], [7]])
    monkeypatch.setattr(texts, "MOST_PAIRS", 2)
    found = cooccurrences(sides, (0, 0), V)
    np.testing.assert_allclose(found, counted([[1, 2], [1, 4]], [[5], [7]]), rtol=1e-6)
    assert found[3, 4] == 0


def test_pieces_of_two_vocabularies_are_counted_apart():
    found = cooccurrences((token_ids([[1, 2]]), token_ids([[1, 3]])), (0, V), V)
    assert found.shape == (2 * V, 2 * V)
    assert found[1, V + 3] == found[2, V + 1] == found[1, V + 1] == pytest.approx(1 / 4)
    assert np.count_nonzero(found) == 4 * 3


def test_too_many_pieces_are_refused():
    with pytest.raises(ValueError, match=r"at most 16,000 pieces\. Received: 16,001\. Pass"):
        cooccurrences((token_ids([[1]]), token_ids([[1]])), (0, 8000), 8001)
