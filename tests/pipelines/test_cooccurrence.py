"""Pieces that come together, counted by the definition."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.batches import cooccurrence
from pipelines.batches.cooccurrence import cooccurrences
from pipelines.vocabularies.token_ids import TokenIds

V = 12
SENTENCES = st.lists(st.lists(st.integers(0, V - 1), max_size=7), min_size=1, max_size=6)


def packed(sentences):
    flat = np.array(list(itertools.chain(*sentences)), np.uint16)
    return TokenIds.of_lengths(flat, [len(one) for one in sentences])


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
    found = cooccurrences((packed(sources), packed(targets)), (0, 0), V)
    np.testing.assert_allclose(found, counted(sources, targets), rtol=1e-5, atol=1e-6)


def test_of_a_large_corpus_pairs_of_all_parts_are_counted(monkeypatch):
    sides = packed([[1, 2], [3, 4], [1, 4]]), packed([[5], [6], [7]])
    monkeypatch.setattr(cooccurrence, "MOST_PAIRS", 2)
    found = cooccurrences(sides, (0, 0), V)
    np.testing.assert_allclose(found, counted([[1, 2], [1, 4]], [[5], [7]]), rtol=1e-6)
    assert found[3, 4] == 0


def test_pieces_of_two_vocabularies_are_counted_apart():
    found = cooccurrences((packed([[1, 2]]), packed([[1, 3]])), (0, V), V)
    assert found.shape == (2 * V, 2 * V)
    assert found[1, V + 3] == found[2, V + 1] == found[1, V + 1] == pytest.approx(1 / 4)
    assert np.count_nonzero(found) == 4 * 3


def test_too_many_pieces_are_refused():
    with pytest.raises(ValueError, match=r"at most 16,000 pieces\. Received: 16,001\. Pass"):
        cooccurrences((packed([[1]]), packed([[1]])), (0, 8000), 8001)
