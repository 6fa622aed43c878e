"""Accuracy and macro F1 of labels, against scikit-learn's."""

import random

import pytest

from keras_transformer.evaluation import label_score


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
