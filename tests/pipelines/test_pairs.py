"""Pairs of sentences: dropped and kept together."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipelines.batches.pairs import TokenizedPairs
from pipelines.vocabularies.token_ids import TokenIds

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
