"""Accuracy and the table of what was taken for what, against scikit-learn's."""

import numpy as np
import pytest

from keras_transformer.evaluation import confusion


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
