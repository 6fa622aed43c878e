"""The toy corpus: reversed, deterministic, disjoint."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpora import reverse

SIZES = st.integers(min_value=1, max_value=60)


@settings(max_examples=30, deadline=None)
@given(st.integers(min_value=0), SIZES, SIZES, SIZES)
def test_sizes_reversal_and_disjointness(seed, train, valid, test):
    corpus = reverse.load("forward", "backward", seed=seed, train=train, valid=valid, test=test)
    splits = (corpus.train, corpus.valid, corpus.test)
    assert [len(split) for split in splits] == [train, valid, test]
    sources = [source for split in splits for source in split.sources]
    assert len(set(sources)) == len(sources)
    for split in splits:
        for source, target in zip(split.sources, split.targets, strict=True):
            assert target.split() == source.split()[::-1]
            assert 3 <= len(source.split()) <= 12


def test_seed_decides_everything():
    assert reverse.load("a", "b", seed=1) == reverse.load("a", "b", seed=1)
    assert reverse.load("a", "b", seed=1) != reverse.load("a", "b", seed=2)


def test_default_sizes_and_every_length_and_letter_in_training():
    corpus = reverse.load("forward", "backward")
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (4000, 200, 200)
    assert {len(source.split()) for source in corpus.train.sources} == set(range(3, 13))
    assert {word for source in corpus.train.sources for word in source.split()} == set(
        reverse.WORDS
    )


@pytest.mark.parametrize("argument", ["train", "valid", "test"])
def test_refuses_an_empty_split(argument):
    with pytest.raises(
        ValueError, match=rf"`{argument}` must be at least 1 pair\. Received: {argument}=0"
    ):
        reverse.load("a", "b", **{argument: 0})
