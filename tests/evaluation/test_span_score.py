"""Spans that tags tell: those of nltk, and the figures of a sum by hand."""

import hypothesis
import hypothesis.strategies as st
import pytest

from keras_transformer.evaluation import span_score

chunk = pytest.importorskip("nltk.chunk", reason="install the extra [parsing]")
TAGS = st.sampled_from(["O", "B-area", "I-area", "B-name", "I-name"])
ROWS = st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=12)


def nltk_tree(tags):
    return chunk.conlltags2tree([(str(number), "X", tag) for number, tag in enumerate(tags)])


def nltk_spans(tags):
    found = set()
    place = 0
    for child in nltk_tree(tags):
        length = 1 if isinstance(child, tuple) else len(child)
        if not isinstance(child, tuple):
            found.add((child.label(), place, place + length))
        place += length
    return found


def well_formed(tags):
    """The same with a B where a span begins, which nltk asks for."""
    before = "O"
    fixed = []
    for tag in tags:
        is_on = before != "O" and before[2:] == tag[2:]
        fixed.append(f"B-{tag[2:]}" if tag.startswith("I-") and not is_on else tag)
        before = fixed[-1]
    return fixed


@hypothesis.given(st.lists(TAGS, max_size=12))
def test_the_spans_are_those_of_nltk(tags):
    assert span_score.spans_of(tags) == nltk_spans(well_formed(tags))


@hypothesis.given(st.lists(ROWS, min_size=1, max_size=4))
def test_the_figures_are_those_of_nltk(rows):
    found, truth = ([[pair[side] for pair in row] for row in rows] for side in (0, 1))
    score = chunk.ChunkScore()
    for ours, theirs in zip(found, truth, strict=True):
        score.score(nltk_tree(well_formed(theirs)), nltk_tree(well_formed(ours)))
    measured = span_score.measure(found, truth)
    assert measured["precision"] == pytest.approx(100 * score.precision(), abs=0.006)
    assert measured["recall"] == pytest.approx(100 * score.recall(), abs=0.006)
    assert measured["f1"] == pytest.approx(100 * score.f_measure(), abs=0.006)


def test_a_sum_by_hand():
    truth = [["O", "B-area", "I-area", "B-name"], ["B-name", "O"]]
    found = [["O", "B-area", "O", "B-name"], ["B-name", "B-area"]]
    measured = span_score.measure(found, truth)
    assert measured == {
        "words": 6,
        "accuracy": 0.6667,
        "spans": 3,
        "precision": 50.0,
        "recall": 66.67,
        "f1": 57.14,
        "by_name": {"area": 0.0, "name": 100.0},
    }
    text = span_score.summary(measured)
    assert text.startswith("57.14 F1 of 3 spans (precision 50.00, recall 66.67); 66.7% of 6 words")
    assert text.index("area") < text.index("name  100.0")
