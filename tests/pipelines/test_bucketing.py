"""Buckets: every length has its place, budgets hold, little is padded, in few shapes."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.batches.bucketing import (
    MOST_PADDING,
    MOST_PADDING_STATIC,
    MOST_SHAPES,
    boundaries,
    bucket,
    merge,
)

LENGTHS = st.integers(1, 300)
# Examples of one to three sides: sentences, pairs, triples.
PAIRS = st.integers(1, 3).flatmap(
    lambda sides: st.lists(st.tuples(*[LENGTHS] * sides), min_size=1, max_size=60)
)
SLACK = st.integers(0, 3000)
SHARES = st.floats(0, 0.9)
ANY = 10**6


def bucketed(pairs, slack, most_padding):
    """The buckets of examples, the examples' lengths, and the padded lengths of each one's bucket;
    both lengths (sides, examples).
    """
    lengths = np.array(pairs)
    buckets = bucket(lengths, lengths.max() + slack, most_padding, most_shapes=ANY)
    return buckets, lengths.T, buckets.lengths[buckets.bucket_of].T


@given(longest=st.integers(1, 5000))
def test_edges_increase_strictly_up_to_the_longest(longest):
    edges = boundaries(longest)
    assert (np.diff(edges) > 0).all()
    assert edges[0] == min(4, longest)
    assert edges[-1] == longest


def test_the_edges_of_the_docstring():
    assert boundaries(20).tolist() == [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 20]


@given(PAIRS, SLACK, SHARES)
def test_every_side_fits_its_bucket_and_none_is_empty_or_repeated(pairs, slack, most_padding):
    buckets, lengths, padded = bucketed(pairs, slack, most_padding)
    assert (lengths <= padded).all()
    assert set(buckets.bucket_of.tolist()) == set(range(len(buckets.batch_sizes)))
    assert len(set(map(tuple, buckets.lengths.tolist()))) == len(buckets.batch_sizes)
    # Tokens and padding are counted as by hand.
    assert buckets.tokens.tolist() == lengths.sum(axis=1).tolist()
    assert buckets.padding == pytest.approx((padded - lengths).sum() / padded.sum(), abs=1e-12)
    # No other size of a batch comes nearer to the tokens.
    batch_tokens = lengths.max() + slack
    assert (buckets.batch_sizes >= 1).all()
    for number, size in enumerate(buckets.batch_sizes.tolist()):
        mean_length = lengths[:, buckets.bucket_of == number].mean()
        nearest = abs(mean_length * np.array([size - 1, size + 1]) - batch_tokens).min()
        assert abs(size * mean_length - batch_tokens) <= nearest + 1e-9


@given(PAIRS, SLACK, st.integers(1, 9))
def test_batches_are_multiples_where_parts_must_be_alike(pairs, slack, multiple):
    batch_tokens = np.max(pairs) + slack
    sizes = bucket(pairs, batch_tokens, multiple=multiple).batch_sizes
    assert (sizes >= multiple).all()
    assert not (sizes % multiple).any()
    free = bucket(pairs, batch_tokens).batch_sizes
    assert (np.abs(sizes - free)[free >= multiple] <= multiple / 2 + 0.5).all()


@given(PAIRS, SLACK, SHARES)
def test_merging_saves_shapes_while_padding_stays_below_the_share(pairs, slack, most_padding):
    merged, unmerged = (bucketed(pairs, slack, share)[0] for share in (most_padding, 0))
    assert merged.padding <= max(unmerged.padding, most_padding) + 1e-12
    assert len(merged.batch_sizes) <= len(unmerged.batch_sizes)


@given(PAIRS, SLACK)
def test_without_a_share_every_rectangle_of_two_edges_keeps_its_shape(pairs, slack):
    """So every side wastes less than a seventh."""
    buckets, lengths, padded = bucketed(pairs, slack, most_padding=0)
    edges = boundaries(lengths.max()).tolist()
    rectangles = [
        tuple(min(edge for edge in edges if edge >= length) for length in pair) for pair in pairs
    ]
    assert [*zip(*padded.tolist(), strict=True)] == rectangles
    assert len(buckets.batch_sizes) == len(set(rectangles))
    assert ((padded < 1.15 * lengths) | (padded <= 4)).all()


def like_captions():
    """Lengths like those of Multi30k: 29,000 pairs of some 14 tokens, the translation a few longer
    or shorter.
    """
    rng = np.random.default_rng(0)
    sources = rng.lognormal(2.6, 0.3, 29_000).round().clip(3, 45)
    targets = (sources + rng.normal(0, 2, 29_000)).round().clip(3, 45)
    return np.stack([sources, targets], axis=-1).astype(int)


def like_wmt():
    """Lengths like those of WMT 2014 English-German in 37,000 pieces, log-normal: 450,000 pairs."""
    rng = np.random.default_rng(0)
    sources = rng.lognormal(3.2, 0.62, 450_000)
    targets = sources * rng.lognormal(0.02, 0.2, 450_000)
    lengths = np.stack([sources, targets], axis=-1).round().astype(int).clip(1) + 1
    return lengths[(lengths <= 256).all(axis=1)]


def test_lengths_like_those_of_wmt_take_at_most_40_shapes_with_10_per_cent_padding():
    """An update has about 25,000 tokens on each side without padding: section 5.1."""
    lengths = like_wmt()
    buckets = bucket(lengths, 25_000)
    assert len(buckets.batch_sizes) == MOST_SHAPES == 40
    assert buckets.padding < 0.1
    # The control: the bound of padding alone leaves more.
    assert len(bucket(lengths, 25_000, most_shapes=ANY).batch_sizes) > 50
    pairs = np.bincount(buckets.bucket_of)
    for side in lengths.T:
        of_bucket = np.bincount(buckets.bucket_of, side) / pairs * buckets.batch_sizes
        assert (abs(of_bucket - 25_000) < 0.25 * 25_000).all()
        updates = (pairs / buckets.batch_sizes).sum()
        assert side.sum() / updates == pytest.approx(25_000, rel=0.03)


def test_captions_take_at_most_40_shapes_with_10_per_cent_padding():
    """With and without a graph for each shape, in updates of several sizes."""
    captions = like_captions()
    for batch_tokens, share in itertools.product(
        (512, 25_000), (MOST_PADDING, MOST_PADDING_STATIC)
    ):
        buckets = bucket(captions, batch_tokens, share)
        assert len(buckets.batch_sizes) <= 40
        assert buckets.padding < 0.1
    few, many = (bucket(captions, 4096, share, most_shapes=ANY) for share in (MOST_PADDING, 0))
    assert many.padding < few.padding < MOST_PADDING < 0.12
    assert len(few.batch_sizes) < len(many.batch_sizes) / 3


SHAPES = st.lists(st.tuples(*[st.integers(1, 12)] * 2), min_size=1, max_size=7, unique=True)


@st.composite
def rectangles(draw):
    """Distinct shapes, their counts, and a limit of positions, from fewer than they fill to more
    than one shape for all would fill.
    """
    shapes = np.array(draw(SHAPES))
    of_each = st.lists(st.integers(1, 20), min_size=len(shapes), max_size=len(shapes))
    counts = np.array(draw(of_each))
    return shapes, counts, draw(st.integers(0, 24 * int(counts.sum())))


def positions(shapes, counts):
    return int((counts * shapes.sum(axis=1)).sum())


def merged_by_hand(shapes, counts, most_positions):
    """Groups of rectangles, merged by trying all pairs; the first of equally good ones is taken."""

    def filled(groups):
        return sum(counts[group].sum() * shapes[group].max(axis=0).sum() for group in groups)

    groups = [[number] for number in range(len(shapes))]
    while len(groups) > 1:
        tries = [
            [
                group + groups[second] if number == first else group
                for number, group in enumerate(groups)
                if number != second
            ]
            for first, second in itertools.combinations(range(len(groups)), 2)
        ]
        best = min(tries, key=filled)
        if filled(best) > most_positions:
            break
        groups = best
    return groups


@given(rectangles())
def test_merging_takes_the_cheapest_two_of_all_while_the_limit_holds(case):
    shapes, counts, _ = case
    merged_shapes, merged = merge(*case, ANY)
    groups = merged_by_hand(*case)
    assert merged_shapes.tolist() == [shapes[group].max(axis=0).tolist() for group in groups]
    members = [np.flatnonzero(merged == number).tolist() for number in range(len(groups))]
    assert members == [sorted(group) for group in groups]
    assert positions(merged_shapes[merged], counts) <= max(case[2], positions(shapes, counts))


def test_no_example_and_a_budget_below_the_longest_sentence_are_refused():
    with pytest.raises(ValueError, match=r"^There is no example to make batches of\.$"):
        bucket(np.zeros((0, 2), int), batch_tokens=8)
    error = r"^`batch_tokens` must hold the longest example, 9 tokens\. Received: batch_tokens=8\."
    for lengths in ([[9, 3], [2, 4]], [[3, 9], [4, 2]], [[9], [2]]):
        with pytest.raises(ValueError, match=error):
            bucket(lengths, batch_tokens=8)


@given(rectangles(), st.integers(1, 8))
def test_too_many_shapes_are_merged_whatever_they_cost(case, most_shapes):
    """As many merging steps as the limit allows, and more while shapes are too many."""
    shapes, counts, most_positions = case
    few, _ = merge(shapes, counts, most_positions, most_shapes)
    by_limit, _ = merge(shapes, counts, most_positions, ANY)
    forced, _ = merge(shapes, counts, 0, most_shapes)
    assert few.tolist() == min(by_limit.tolist(), forced.tolist(), key=len)
