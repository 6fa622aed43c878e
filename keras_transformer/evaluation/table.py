"""Scores as tables of a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Set rows of equally many cells under each other, numbers to the right and words to the left.

    A column is of words if its last cell has a letter.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    words = [any(map(str.isalpha, cell)) for cell in rows[-1]]
    lines = [
        "  ".join(
            cell.ljust(width) if is_words else cell.rjust(width)
            for cell, width, is_words in zip(row, widths, words, strict=True)
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)


def of_scores(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of what `metrics.measure` gave."""
    has_interval = any("interval" in score for score in scores.values())
    rows = [["metric", "score", *["95 % interval"] * has_interval, "signature"]]
    for score in scores.values():
        interval = [f"{score['mean']:.2f} ± {score['interval']:.2f}"] if has_interval else []
        rows.append([score["label"], f"{score['score']:.2f}", *interval, score["signature"]])
    return aligned(rows)


def of_comparison(comparison: Mapping[str, Mapping[str, Any]], baseline: str, test: str) -> str:
    """The table of what `metrics.compare` gave."""
    rows = [["metric", "baseline", "score", "difference", "p", "signature"]]
    for one in comparison.values():
        numbers = (f"{one[name]:.2f}" for name in ("baseline", "score"))
        difference = f"{one['difference']:+.2f}"
        # Equal translations have none.
        p_value = "-" if one["p_value"] is None else f"{one['p_value']:.4f}"
        rows.append([one["label"], *numbers, difference, p_value, one["signature"]])
    return f"baseline: {baseline}; paired test: {test}\n{aligned(rows)}"
