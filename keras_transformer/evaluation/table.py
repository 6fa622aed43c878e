"""Scores as tables for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Align rows of equally many cells: columns of numbers to the right, of words to the left.

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
    """Return the table of the scores of `metrics.measure`."""
    has_interval = any("interval" in score for score in scores.values())
    rows = [["metric", "score", *["95 % interval"] * has_interval, "signature"]]
    for score in scores.values():
        interval = [f"{score['mean']:.2f} ± {score['interval']:.2f}"] if has_interval else []
        rows.append([score["label"], f"{score['score']:.2f}", *interval, score["signature"]])
    return aligned(rows)


def of_comparison(comparison: Mapping[str, Mapping[str, Any]], baseline: str, test: str) -> str:
    """Return the table of the results of `metrics.compare`."""
    rows = [["metric", "baseline", "score", "difference", "p", "signature"]]
    for result in comparison.values():
        numbers = (f"{result[name]:.2f}" for name in ("baseline", "score"))
        difference = f"{result['difference']:+.2f}"
        # Equal translations have none.
        p_value = "-" if result["p_value"] is None else f"{result['p_value']:.4f}"
        rows.append([result["label"], *numbers, difference, p_value, result["signature"]])
    return f"baseline: {baseline}; paired test: {test}\n{aligned(rows)}"
