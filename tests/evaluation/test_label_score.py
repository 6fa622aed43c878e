"""Accuracy and macro F1 of labels, against scikit-learn's."""

import random

import numpy as np
import pytest

from keras_transformer.evaluation import confusion, label_score


def test_they_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics", reason="install the extra [vision]")
    draw = random.Random(1)
    truth = draw.choices("abc", k=60)
    found = [label if draw.random() < 0.6 else draw.choice("abcd") for label in truth]
    known = sorted(set(truth))
    expected = metrics.f1_score(truth, found, labels=known, average="macro")
    scores = label_score.measure(found, truth)
    assert scores["texts"] == 60
    assert scores["accuracy"] == pytest.approx(metrics.accuracy_score(truth, found), abs=1e-4)
    assert scores["macro_f1"] == pytest.approx(expected, abs=1e-4)


def test_by_hand():
    # a: 2 of 2 found, 1 too often. b: 1 of 2 found.
    scores = label_score.measure(["a", "a", "a", "b"], ["a", "a", "b", "b"])
    assert scores == {"texts": 4, "accuracy": 0.75, "macro_f1": round((4 / 5 + 2 / 3) / 2, 4)}


# Accuracy and the table of what was taken for what, against scikit-learn's.
def test_it_is_scikit_learn_s():
    metrics = pytest.importorskip("sklearn.metrics", reason="install the extra [vision]")
    rng = np.random.default_rng(5)
    right = rng.integers(0, 4, 200)
    told = np.where(rng.random(200) < 0.6, right, rng.integers(0, 4, 200))
    counts = confusion.confusion(right, told, 4)
    np.testing.assert_array_equal(counts, metrics.confusion_matrix(right, told))
    assert confusion.accuracy(counts) == pytest.approx(metrics.accuracy_score(right, told))
    # A control: the other way round it is the transpose.
    assert not np.array_equal(confusion.confusion(told, right, 4), counts)


def test_the_table_has_a_row_for_each_class():
    text = confusion.as_text([[3, 1, 0], [0, 2, 0], [0, 0, 0]], ["a", "b", "c"])
    assert [line.split() for line in text.splitlines()] == [
        ["class", "a", "b", "c", "right"],
        ["a", "3", "1", ".", "75.0%"],
        ["b", ".", "2", ".", "100.0%"],
        ["c", ".", ".", ".", "-"],
    ]
