"""Checkpoint averaging: "a single model obtained by averaging the last 5 checkpoints" (Vaswani et
al. 2017, section 6.1).
"""

import math
import pathlib
from collections.abc import Callable, Iterable

import numpy as np

from keras_transformer.training import checkpoint


def average(paths: Iterable[pathlib.Path]) -> dict[str, np.ndarray]:
    """Average the weights of some checkpoints, summed in float64.

        theta = (theta_1 + ... + theta_n) / n

    Args:
        paths: checkpoints of one model, at least one.

    Returns:
        Arrays by name, of the shapes and dtypes of the weights.

    Raises:
        ValueError: if there is none, or they are not of one model.
    """
    paths = list(paths)
    if not paths:
        raise ValueError(
            "There is no checkpoint to average. Train first, or name another --model_dir."
        )
    first = checkpoint.weights_of(paths[0])
    total = {name: array.astype(np.float64) for name, array in first.items()}
    for path in paths[1:]:
        weights = checkpoint.weights_of(path)
        if {name: array.shape for name, array in weights.items()} != {
            name: array.shape for name, array in first.items()
        }:
            raise ValueError(
                f"{paths[0]} and {path} are not of one model: names or shapes of their weights "
                "differ."
            )
        for name, array in weights.items():
            total[name] += array
    return {name: (total[name] / len(paths)).astype(first[name].dtype) for name in first}


def best_number(
    paths: Iterable[pathlib.Path], measure: Callable[[dict[str, np.ndarray]], float]
) -> tuple[int, list[float]]:
    """Choose how many of the last checkpoints are averaged.

    Args:
        paths: checkpoints of one model, oldest first, at least one.
        measure: takes weights by name, gives the validation cross-entropy.

    Returns:
        The number with the lowest cross-entropy, the smallest of several; and the cross-entropy of
        each number from 1 on.
    """
    paths = [*paths]
    losses = [measure(average(paths[-number:])) for number in range(1, len(paths) + 1)]
    ranked = [loss if math.isfinite(loss) else math.inf for loss in losses]
    return ranked.index(min(ranked)) + 1, losses


def last_ones(folder: pathlib.Path, count: int) -> list[pathlib.Path]:
    """Find the checkpoints of a run that are averaged.

    Args:
        folder: of the checkpoints.
        count: how many of the last there are to be.

    Returns:
        The last of those that are there to be averaged; the newest state alone if a run was too
        short to write one.
    """
    return checkpoint.averaged_ones(folder)[-count:] or checkpoint.checkpoints(folder)[-1:]


def of_steps(paths: Iterable[pathlib.Path]) -> str:
    """Say what is averaged, in words."""
    steps = [f"{checkpoint.step_in(path):,}" for path in paths]
    return f"mean of the checkpoints of steps {', '.join(steps)}"
