"""ParallelText: sources and targets stay aligned."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpora.parallel_text import ParallelText


@given(st.lists(st.tuples(st.text(), st.text())))
def test_pairs_stay_aligned(pairs):
    text = ParallelText.from_pairs(iter(pairs))
    assert list(zip(text.sources, text.targets, strict=True)) == pairs
    assert len(text) == len(pairs)


@given(st.lists(st.text(), max_size=5), st.lists(st.text(), max_size=5))
def test_refuses_exactly_the_unequal_lengths(sources, targets):
    if len(sources) == len(targets):
        assert len(ParallelText(sources, targets)) == len(sources)
    else:
        with pytest.raises(ValueError, match=f"{len(sources)} sources and {len(targets)} targets"):
            ParallelText(sources, targets)


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ParallelText(["a"], ["b"]).sources = []
