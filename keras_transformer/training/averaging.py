"""The weights that are scored and served: "a single model obtained by averaging the last 5
checkpoints" (Vaswani et al. 2017, section 6.1), a moving average, or the best epoch's.
"""

import collections
import math
import pathlib
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from keras_transformer.training import checkpoint
from keras_transformer.training.loss import label_measures
from keras_transformer.training.validation import kept_step


def average(paths: Iterable[pathlib.Path]) -> dict[str, np.ndarray]:
    """Average the weights of checkpoints of one model by name, as trained, summed in float64.

    theta = (theta_1 + ... + theta_n) / n
    """
    paths = list(paths)
    if not paths:
        raise ValueError(
            "There is no checkpoint to average. Train first, or name another --model_dir."
        )
    return collections.deque(_means(paths), maxlen=1).pop()


def _means(paths):
    """Yield the `average` of the first path, of the first two, and so on; read each once."""
    total = {}
    first_shapes = None
    for number, path in enumerate(paths, 1):
        weights = checkpoint.read_archive(path, checkpoint.WEIGHTS)
        shapes = {name: array.shape for name, array in weights.items()}
        first_shapes = first_shapes or shapes
        if shapes != first_shapes:
            raise ValueError(
                f"{paths[0]} and {path} are not of one model: names or shapes of their weights "
                "differ."
            )
        for name, array in weights.items():
            total[name] = total.get(name, np.float64(0)) + array
        yield {name: (total[name] / number).astype(array.dtype) for name, array in weights.items()}


def best_number(
    paths: Iterable[pathlib.Path], measure: Callable[[dict[str, np.ndarray]], float]
) -> tuple[int, list[float]]:
    """Choose how many of the last checkpoints to average (paths are oldest first): the number with
    the lowest validation cross-entropy, and the smallest of equals. Also return the cross-entropy
    of each number from 1 on.
    """
    losses = [measure(mean) for mean in _means([*paths][::-1])]
    ranked = [loss if math.isfinite(loss) else math.inf for loss in losses]
    return ranked.index(min(ranked)) + 1, losses


def last_checkpoints(folder: pathlib.Path, count: int) -> list[pathlib.Path]:
    """List the last `count` checkpoints to average in a folder, or if it has none the newest."""
    return checkpoint.checkpoints_to_average(folder)[-count:] or checkpoint.checkpoints(folder)[-1:]


def of_steps(paths: Iterable[pathlib.Path]) -> str:
    steps = [f"{checkpoint.step_in(path):,}" for path in paths]
    many = "mean of the checkpoints of steps" if len(steps) > 1 else "checkpoint of step"
    return f"{many} {', '.join(steps)}"


def cross_entropy_of(model, batches: Callable) -> Callable[[Mapping[str, np.ndarray]], float]:
    """Return a function that measures the cross-entropy of a model with given weights, by name."""
    measure = label_measures(model, batches)

    def measure_of(weights):
        checkpoint.set_weights(model, checkpoint.merged(weights))
        return measure()["cross_entropy"]

    return measure_of


def choose_weights(
    folder,
    last: int,
    best: str | None = None,
    averages: Mapping[str, np.ndarray] | None = None,
    measure: Callable[[Mapping[str, np.ndarray]], float] | None = None,
) -> str:
    """Write the weights that are scored and served to `folder.averaged`, and say which they are:
    those of the best epoch by the measure `best`; else moving averages, by name; else the mean of
    the `last` checkpoints, or of as many of them as `measure`, a function of weights by name, gives
    the lowest validation cross-entropy.
    """
    if best:
        if kept_step(folder.best, f"val_{best}") is None:
            raise ValueError(
                f"{folder.best} must hold the best epoch by --keep_best={best}, and no epoch of "
                "this run was kept by it. Train longer (--max_steps, --max_minutes), or leave out "
                "--keep_best."
            )
        weights = average([folder.best])
        words = "best epoch"
    elif averages:
        weights = averages
        words = "moving average of the weights"
    else:
        checkpoints = last_checkpoints(folder.checkpoints, last)
        reason = ""
        if measure and len(checkpoints) > 1:
            number, losses = best_number(checkpoints, measure)
            numbers = ", ".join(f"{loss:.4g}" for loss in losses)
            reason = f", chosen of 1 to {len(losses)} by validation cross-entropy: {numbers}"
            checkpoints = checkpoints[-number:]
        weights = average(checkpoints)
        last_step = checkpoint.step_in(checkpoint.checkpoints(folder.checkpoints)[-1])
        if last_step > checkpoint.step_in(checkpoints[-1]):
            reason += f", without what was learned up to step {last_step:,}"
        words = of_steps(checkpoints) + reason
    folder.write_averaged(weights)
    return words
