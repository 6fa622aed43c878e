"""Buckets: every length has its place, budgets hold, little is padded."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.bucketing import boundaries, bucket_pairs

LENGTHS = st.integers(1, 300)
PAIRS = st.lists(st.tuples(LENGTHS, LENGTHS), min_size=1, max_size=60)
SLACK = st.integers(0, 3000)


def bucketed(pairs, slack):
    """The buckets of some pairs; their lengths, (2, pairs); and the padded lengths of each pair's bucket, (2, pairs)."""
    lengths = np.array(pairs).T
    buckets = bucket_pairs(*lengths, batch_tokens=lengths.max() + slack)
    return buckets, lengths, np.stack([buckets.source_lengths, buckets.target_lengths])[:, buckets.bucket_of]


@given(longest=st.integers(1, 5000), first=st.integers(1, 20), growth=st.floats(1.01, 3.0))
def test_edges_increase_strictly_up_to_the_longest(longest, first, growth):
    edges = boundaries(longest, first, growth)
    assert (np.diff(edges) > 0).all()
    assert edges[0] == min(first, longest)
    assert edges[-1] == longest


def test_the_edges_of_the_docstring():
    assert boundaries(20).tolist() == [4, 5, 6, 7, 8, 10, 12, 15, 18, 20]


@settings(deadline=None)
@given(PAIRS, SLACK)
def test_every_side_fits_its_bucket_and_wastes_less_than_a_quarter(pairs, slack):
    _, lengths, padded = bucketed(pairs, slack)
    assert (lengths <= padded).all()
    assert ((padded < 1.25 * lengths) | (padded <= 4)).all()


@settings(deadline=None)
@given(PAIRS, SLACK)
def test_a_batch_keeps_the_budget_on_both_sides_and_one_more_pair_would_not(pairs, slack):
    buckets, lengths, _ = bucketed(pairs, slack)
    longer_side = np.maximum(buckets.source_lengths, buckets.target_lengths)
    assert (buckets.batch_sizes >= 1).all()
    assert (buckets.batch_sizes * longer_side <= lengths.max() + slack).all()
    assert ((buckets.batch_sizes + 1) * longer_side > lengths.max() + slack).all()


@settings(deadline=None)
@given(PAIRS, SLACK)
def test_there_is_no_empty_bucket_and_no_shape_twice(pairs, slack):
    buckets, _, _ = bucketed(pairs, slack)
    assert set(buckets.bucket_of.tolist()) == set(range(len(buckets.batch_sizes)))
    assert len(set(zip(buckets.source_lengths, buckets.target_lengths, strict=True))) == len(buckets.batch_sizes)


@settings(deadline=None)
@given(PAIRS, SLACK)
def test_batches_and_tokens_are_counted_as_by_hand(pairs, slack):
    buckets, lengths, _ = bucketed(pairs, slack)
    members = [buckets.bucket_of.tolist().count(bucket) for bucket in range(len(buckets.batch_sizes))]
    full = [count / size for count, size in zip(members, buckets.batch_sizes, strict=True)]
    assert buckets.steps_per_epoch >= 1
    assert abs(buckets.steps_per_epoch - sum(full)) <= 0.5 + 1e-9 or sum(full) < 0.5
    assert buckets.batches_of_one_pass == sum(-(-count // size) for count, size in zip(members, buckets.batch_sizes, strict=True))
    assert buckets.tokens == lengths.sum()


def test_the_shapes_are_told_with_their_padding():
    assert bucket_pairs([4, 4, 8], [4, 4, 6], 8).describe() == "2 batches an epoch in 2 shapes, 0.0% padding"
    assert bucket_pairs([1], [3], 4).describe() == "1 batches an epoch in 1 shapes, 33.3% padding"


def test_a_budget_below_the_longest_sentence_is_refused():
    message = r"^`batch_tokens` must hold the longest sentence, 9 tokens\. Received: batch_tokens=8\.$"
    for sides in (([9, 2], [3, 4]), ([3, 4], [9, 2])):
        with pytest.raises(ValueError, match=message):
            bucket_pairs(*sides, batch_tokens=8)
