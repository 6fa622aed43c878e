"""Spans cut out of text: put back they give the text, and as many words are cut as T5 cuts."""

import collections
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import corpora
from pipelines.corpora.spans import SENTINELS, cut, restored

WORDS = st.lists(
    st.sampled_from(["a", "cat", "sat", "on", "the", "mat", "."]), min_size=2, max_size=300
)


@given(WORDS, st.integers(0, 2**32))
def test_what_is_cut_out_can_be_put_back(words, seed):
    source, target = cut(words, random.Random(seed))
    assert restored(source, target).split() == words
    missing = [word for word in target.split() if word not in SENTINELS]
    assert len(missing) == min(max(1, round(0.15 * len(words))), len(words) - 1)
    names = [word for word in target.split() if word in SENTINELS]
    assert names == list(SENTINELS[: len(names)])
    assert [word for word in source.split() if word in SENTINELS] == names[:-1]
    # No two spans stand side by side.
    assert not any({first, second} <= set(SENTINELS) for first, second in pairwise(source.split()))


def test_what_a_model_leaves_out_is_left_out():
    assert restored("a <x0> sat <x1>", "<x1> there <x2>") == "a sat there"
    assert restored("a <x0> sat", "nonsense") == "a sat"


def test_every_span_is_as_likely():
    """Of three words one is cut out."""
    found = collections.Counter(cut(["a", "b", "c"], random.Random(s))[0] for s in range(600))
    assert set(found) == {"<x0> b c", "a <x0> c", "a b <x0>"}
    assert min(found.values()) > 150


def test_the_corpus_names_its_sentinels_and_drops_what_has_no_span(tmp_path):
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.en").write_text("Thank you for it .\nYes\na <x3> b\n")
    settings = {"source_language": "en", "target_language": "en", "data_dir": tmp_path}
    corpus = corpora.load("spans", **settings, seed=3)
    assert len(corpus.train) == 1
    assert corpus.dropped == {"without a span": 6}
    assert corpus.tags == SENTINELS
    assert (corpus.source_language, corpus.target_language) == ("en", "spans")
    again = corpora.load("spans", **settings, seed=3)
    assert again.train == corpus.train
    (tmp_path / "valid.en").write_text("Yes\n")
    with pytest.raises(ValueError, match=r"^the file valid holds no line of two words or more"):
        corpora.load("spans", **settings)
