"""Accuracy, F1 and confusion of the labels of texts and the classes of pictures."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from keras_transformer.evaluation.table import aligned


def measure(predicted: Sequence[str], truth: Sequence[str]) -> dict:
    """Compare labels with the truth.

        F1 = 2 right / (predicted + true),    macro F1: its mean over the labels of the truth

    Returns:
        "texts", "accuracy" and "macro_f1".
    """
    right = Counter(label for label, true in zip(predicted, truth, strict=True) if label == true)
    counts = Counter(predicted) + Counter(truth)
    f1 = [2 * right[label] / counts[label] for label in set(truth)]
    return {
        "texts": len(truth),
        "accuracy": round(right.total() / len(truth), 4),
        "macro_f1": round(sum(f1) / len(f1), 4),
    }


def confusion(truth: Sequence[int], predicted: Sequence[int], classes: int) -> np.ndarray:
    """Count examples by true class, row i, and by predicted class, column j: int64 (K, K)."""
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (np.asarray(truth, np.int64), np.asarray(predicted, np.int64)), 1)
    return counts


def accuracy(counts: np.ndarray) -> float:
    """Return the share of examples on the diagonal of `confusion`."""
    return float(np.trace(counts) / counts.sum())


def confusion_as_text(counts: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """Format `confusion` as a table: for each class a row of its predictions, and its recall."""
    rows = [["class", *names, "right"]]
    for number, (name, row) in enumerate(zip(names, counts, strict=True)):
        share = f"{row[number] / sum(row):.1%}" if sum(row) else "-"
        rows.append([name, *(str(count) if count else "." for count in row), share])
    return aligned(rows)
