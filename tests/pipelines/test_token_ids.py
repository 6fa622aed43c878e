"""Packed ids: two arrays that stand for a list of lists."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.token_ids import TokenIds, TokenizedPairs, smallest_dtype

SENTENCES = st.lists(st.lists(st.integers(0, 2**16 - 1), max_size=8), max_size=12)
DTYPES = st.sampled_from([np.uint16, np.int32])


def packed(sentences, dtype=np.uint16):
    return TokenIds.of_lengths(
        np.array([*itertools.chain(*sentences)], dtype), [len(sentence) for sentence in sentences]
    )


def listed(ids):
    return [ids[number].tolist() for number in range(len(ids))]


@given(SENTENCES, DTYPES)
def test_packing_loses_nothing(sentences, dtype):
    ids = packed(sentences, dtype)
    assert listed(ids) == [sentence.tolist() for sentence in ids] == sentences
    assert ids.lengths.tolist() == [len(sentence) for sentence in sentences]
    assert ids.flat.dtype == dtype


@pytest.mark.parametrize("lengths", [[], [2], [2, 2], [4]])
def test_lengths_that_do_not_add_up_to_the_ids_are_refused(lengths):
    message = (
        rf"^`lengths` must add up to the 3 ids of `flat`\. Received: a sum of {sum(lengths)}\.$"
    )
    with pytest.raises(ValueError, match=message):
        TokenIds.of_lengths(np.array([5, 6, 7]), lengths)


@given(st.lists(st.tuples(SENTENCES, DTYPES), min_size=1, max_size=4))
def test_joined_parts_are_joined_lists(parts):
    joined = TokenIds.concatenate(packed(*part) for part in parts)
    assert listed(joined) == [*itertools.chain(*(sentences for sentences, _ in parts))]
    assert joined.flat.dtype == max(
        (dtype for _, dtype in parts), key=lambda dtype: np.dtype(dtype).itemsize
    )


@given(SENTENCES, DTYPES, st.data())
def test_kept_sentences_are_those_of_the_list(sentences, dtype, data):
    keep = data.draw(st.lists(st.booleans(), min_size=len(sentences), max_size=len(sentences)))
    kept = packed(sentences, dtype).where(np.array(keep, bool))
    assert listed(kept) == [*itertools.compress(sentences, keep)]
    assert kept.flat.dtype == dtype


def by_hand(sentences, rows, length):
    return [sentences[row] + [0] * (length - len(sentences[row])) for row in rows]


@given(SENTENCES.filter(bool), DTYPES, st.data())
def test_a_rectangle_holds_its_rows_and_zeros_behind_them(sentences, dtype, data):
    rows = data.draw(st.lists(st.integers(0, len(sentences) - 1), min_size=1))
    length = max(len(sentences[row]) for row in rows) + data.draw(st.integers(0, 5))
    rectangle = packed(sentences, dtype).padded(np.array(rows), length)
    assert rectangle.tolist() == by_hand(sentences, rows, length)
    assert (rectangle.shape, rectangle.dtype) == ((len(rows), length), np.int32)


def test_what_is_read_past_a_sentence_would_be_its_neighbour():
    """The control: in the packed row no zero stands between two sentences."""
    sentences = [[5, 6], [7, 8, 9]]
    ids = packed(sentences)
    assert ids.padded(np.array([0]), 3).tolist() == by_hand(sentences, [0], 3) == [[5, 6, 0]]
    assert ids.flat[:3].tolist() == [5, 6, 7]


PAIRS = st.lists(
    st.tuples(*[st.lists(st.integers(4, 99), min_size=1, max_size=9)] * 2), max_size=12
)


def packed_pairs(pairs, too_long=0):
    return TokenizedPairs(*(packed([pair[side] for pair in pairs]) for side in range(2)), too_long)


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


@given(st.integers(1, 2**31))
def test_the_dtype_holds_every_id(vocabulary_size):
    dtype = smallest_dtype(vocabulary_size)
    assert np.iinfo(dtype).max >= vocabulary_size - 1
    assert dtype.itemsize == (2 if vocabulary_size <= 65536 else 4)


def test_65536_ids_fit_two_bytes_and_one_more_does_not():
    assert (smallest_dtype(65536), smallest_dtype(65537)) == (np.uint16, np.int32)
    assert np.array([65535, 65536]).astype(np.uint16).tolist() == [65535, 0]
