"""How well classes are predicted: accuracy, and which class is taken for which."""

from collections.abc import Sequence

import numpy as np

from keras_transformer.evaluation.table import aligned


def confusion(right: Sequence[int], told: Sequence[int], classes: int) -> np.ndarray:
    """Count examples by class and by the class that was predicted.

    Returns:
        int64 (K, K): row i is the class, column j the predicted one.
    """
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (np.asarray(right, np.int64), np.asarray(told, np.int64)), 1)
    return counts


def accuracy(counts: np.ndarray) -> float:
    """The share of examples on the diagonal of `confusion`."""
    return float(np.trace(counts) / counts.sum())


def as_text(counts: Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """`confusion` as a table: a row for each class, what it was predicted as, and its recall."""
    rows = [["class", *names, "right"]]
    for number, (name, row) in enumerate(zip(names, counts, strict=True)):
        share = f"{row[number] / sum(row):.1%}" if sum(row) else "-"
        rows.append([name, *(str(count) if count else "." for count in row), share])
    return aligned(rows)
