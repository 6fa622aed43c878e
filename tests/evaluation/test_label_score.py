"""Accuracy and macro F1 of labels, against scikit-learn's, and of spans, against nltk's."""

import random

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from keras_transformer.evaluation import label_score, span_score


def test_accuracy_and_macro_f1_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics", reason="install the extra [vision]")
    draw = random.Random(1)
    truth = draw.choices("abc", k=60)
    predicted = [label if draw.random() < 0.6 else draw.choice("abcd") for label in truth]
    labels = sorted(set(truth))
    expected = metrics.f1_score(truth, predicted, labels=labels, average="macro")
    scores = label_score.measure(predicted, truth)
    assert scores["texts"] == 60
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(truth, predicted), abs=1e-4)
    assert scores["macro_f1"] == pytest.approx(expected, abs=1e-4)


# Accuracy and confusion matrix, against scikit-learn's.
def test_the_confusion_matrix_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics", reason="install the extra [vision]")
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 4, 200)
    predicted = np.where(rng.random(200) < 0.6, truth, rng.integers(0, 4, 200))
    counts = label_score.confusion(truth, predicted, 4)
    np.testing.assert_array_equal(counts, metrics.confusion_matrix(truth, predicted))
    assert label_score.accuracy(counts) == pytest.approx(metrics.accuracy_score(truth, predicted))


def test_the_table_has_a_row_for_each_class():
    text = label_score.confusion_as_text([[3, 1, 0], [0, 2, 0], [0, 0, 0]], ["a", "b", "c"])
    assert [line.split() for line in text.splitlines()] == [
        ["class", "a", "b", "c", "right"],
        ["a", "3", "1", ".", "75.0%"],
        ["b", ".", "2", ".", "100.0%"],
        ["c", ".", ".", ".", "-"],
    ]


# Spans of tags and their scores, against nltk's and against a sum by hand.
TAGS = st.sampled_from(["O", "B-area", "I-area", "B-name", "I-name"])
ROWS = st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def chunk():
    return pytest.importorskip("nltk.chunk", reason="install the extra [parsing]")


def nltk_tree(chunk, tags):
    return chunk.conlltags2tree([(str(number), "X", tag) for number, tag in enumerate(tags)])


def nltk_spans(chunk, tags):
    spans = set()
    place = 0
    for child in nltk_tree(chunk, tags):
        length = 1 if isinstance(child, tuple) else len(child)
        if not isinstance(child, tuple):
            spans.add((child.label(), place, place + length))
        place += length
    return spans


def well_formed(tags):
    """The tags with a B wherever a span begins, as nltk needs them."""
    before = "O"
    fixed = []
    for tag in tags:
        is_on = before != "O" and before[2:] == tag[2:]
        fixed.append(f"B-{tag[2:]}" if tag.startswith("I-") and not is_on else tag)
        before = fixed[-1]
    return fixed


@hypothesis.given(st.lists(TAGS, max_size=12))
def test_the_spans_are_those_of_nltk(chunk, tags):
    assert span_score.spans_of(tags) == nltk_spans(chunk, well_formed(tags))


@hypothesis.given(st.lists(ROWS, min_size=1, max_size=4))
def test_the_figures_are_those_of_nltk(chunk, rows):
    predicted, truth = ([[pair[side] for pair in row] for row in rows] for side in (0, 1))
    score = chunk.ChunkScore()
    for predicted_tags, true_tags in zip(predicted, truth, strict=True):
        trees = (nltk_tree(chunk, well_formed(tags)) for tags in (true_tags, predicted_tags))
        score.score(*trees)
    measured = span_score.measure(predicted, truth)
    assert measured["precision"] == pytest.approx(100 * score.precision(), abs=0.006)
    assert measured["recall"] == pytest.approx(100 * score.recall(), abs=0.006)
    assert measured["f1"] == pytest.approx(100 * score.f_measure(), abs=0.006)


def test_span_scores_worked_out_by_hand():
    truth = [["O", "B-area", "I-area", "B-name"], ["B-name", "O"]]
    predicted = [["O", "B-area", "O", "B-name"], ["B-name", "B-area"]]
    measured = span_score.measure(predicted, truth)
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
    of_speech = span_score.measure([["NOUN", "O"]], [["NOUN", "VERB"]])
    assert of_speech == {"words": 2, "accuracy": 0.5}
    assert span_score.summary(of_speech) == "50.0% of 2 words get their tag"
