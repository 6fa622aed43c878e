"""What a head does, as a few numbers (Vaswani et al. 2017, appendix: "the heads clearly learned to
perform different tasks").
"""

from collections.abc import Callable

import numpy as np


def distance(weights: np.ndarray) -> np.ndarray:
    """sum_s w(t, s) |s - t|: how far away a row looks, in pieces.

    Args:
        weights: (..., T, S), each row sums to 1. Here and in all measures below.

    Returns:
        (..., T), a number for each row. Here and in all measures below.
    """
    rows, columns = weights.shape[-2:]
    apart = np.abs(np.arange(columns)[None] - np.arange(rows)[:, None])
    return (weights * apart).sum(axis=-1)


def entropy(weights: np.ndarray) -> np.ndarray:
    """-sum_s w(t, s) ln w(t, s), in nats: 0 if one column has all, ln S if all have the same."""
    logarithms = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -(weights * logarithms).sum(axis=-1)


def edge(weights: np.ndarray, column: int) -> np.ndarray:
    """The weight of one column: of EOS in the source, of the start in what a decoder reads."""
    return weights[..., column]


def beside(weights: np.ndarray, offset: int) -> np.ndarray:
    """w(t, t + offset), 0 where there is no such column. An offset of 0 is the same position, -1
    the one before.
    """
    rows, columns = weights.shape[-2:]
    places = np.arange(rows) + offset
    there = (places >= 0) & (places < columns)
    chosen = np.zeros(weights.shape[:-1])
    chosen[..., there] = weights[..., np.arange(rows)[there], places[there]]
    return chosen


# The column that marks the edge of a sentence: EOS, or the start.
EDGES = {"encoder": -1, "decoder": 0, "cross": -1}
# Titles of the measures, each of weights (..., T, S) and a stack.
MEASURES: dict[str, Callable[[np.ndarray, str], np.ndarray]] = {
    "distance": lambda weights, stack: distance(weights),
    "entropy": lambda weights, stack: entropy(weights),
    "on EOS, start": lambda weights, stack: edge(weights, EDGES[stack]),
    "on itself": lambda weights, stack: beside(weights, 0),
    "on previous": lambda weights, stack: beside(weights, -1),
    "on next": lambda weights, stack: beside(weights, 1),
}
