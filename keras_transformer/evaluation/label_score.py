"""How good the labels of texts are."""

from collections.abc import Sequence


def measure(found: Sequence[str], truth: Sequence[str]) -> dict:
    """Compare labels with the truth.

        F1 = 2 right / (found + true),    macro F1: its mean over the labels of the truth

    Returns:
        "texts", "accuracy" and "macro_f1".
    """
    pairs = list(zip(found, truth, strict=True))
    right = [label for label, true in pairs if label == true]
    f1 = [
        2 * right.count(label) / (found.count(label) + truth.count(label)) for label in set(truth)
    ]
    return {
        "texts": len(pairs),
        "accuracy": round(len(right) / len(pairs), 4),
        "macro_f1": round(sum(f1) / len(f1), 4),
    }
