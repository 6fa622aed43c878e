"""ParallelText: sources and targets stay aligned."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import corpora
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


@pytest.fixture
def files(tmp_path):
    """Two files whose second line is empty on one side, and third is too long."""
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.en").write_text("a\n\n" + "b" * 100_001 + "\nc\n")
        (tmp_path / f"{split}.de").write_text("A\nB\nC\nD\n")
    return tmp_path


def test_each_pair_knows_its_line_and_each_reason_its_first(files):
    settings = {"source_language": "en", "target_language": "de", "data_dir": files}
    corpus = corpora.load("text_files", **settings)
    assert [corpus.valid.place(index, "") for index in (0, 1)] == [
        f"{files}/valid.de, line 1",
        f"{files}/valid.de, line 4",
    ]
    assert corpus.dropped == {"empty": 3, "huge line": 3}
    assert corpus.dropped.firsts["empty"] == f"{files}/train.en, line 2"
    with pytest.raises(
        ValueError, match=r"train\.en, line 2: empty\. Correct it, or leave out --s"
    ):
        corpora.load("text_files", **settings, strict=True)
    pairs = corpora.stream("text_files", **settings, strict=True)
    with pytest.raises(ValueError, match=r"train\.en, line 2: empty"):
        list(pairs)
    # The control: what is read as it is has nothing to refuse.
    with pytest.raises(ValueError, match=r"Only corpus .*text_files or .* reads `strict`"):
        corpora.load("reverse", source_language="a", target_language="b", strict=True)
    lines = corpora.load("lines", **settings)
    assert lines.test.place(1, "") == f"{files}/test.en, line 4"
    (files / "train.en").write_text("one two\n<x0> three\nfour five\n")
    spans = corpora.load("spans", **{**settings, "prefixes": ["train"] * 3})
    assert spans.train.place(1, "") == f"{files}/train.en, line 3"
    assert spans.dropped.firsts == {"without a span": f"{files}/train.en, line 2"}


def test_pairs_of_a_mixture_know_the_lines_of_its_members(files):
    member = {"corpus": "text_files", "source_language": "en", "target_language": "de"}
    other = {"corpus": "reverse", "source_language": "a", "target_language": "b"}
    said = [{**other, "seed": 1}, {**member, "data_dir": "."}]
    (files / "mixture.json").write_text(json.dumps({"corpora": said}))
    settings = {"source_language": None, "target_language": None}
    mixture = files / "mixture.json"
    corpus = corpora.load("mixture", **settings, mixture=mixture)
    assert corpus.test.place(len(corpus.test) - 1, "") == f"{files}/test.de, line 4"
    assert corpus.test.place(2, "") == f"{mixture}, member 1, pair 3"
    assert corpus.dropped.firsts["empty"] == f"{files}/train.en, line 2"
    with pytest.raises(ValueError, match=r"mixture\.json, member 2: .*train\.en, line 2: empty"):
        corpora.load("mixture", **settings, mixture=mixture, strict=True)


def test_a_text_of_unknown_origin_has_a_number():
    assert ParallelText(["a", "b"], ["A", "B"]).place(1, "the test side") == "the test side, text 2"
