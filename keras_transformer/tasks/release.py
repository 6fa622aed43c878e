"""From the checkpoints of a finished run to a model that can be served (Vaswani et al. 2017,
section 6.1).
"""

import pathlib
from collections.abc import Callable, Mapping

import keras
import numpy as np

from keras_transformer.runs.folder import RunFolder
from keras_transformer.saved_models.write import export
from keras_transformer.tasks.task import Task
from keras_transformer.training import averaging
from keras_transformer.training.early_stopping import kept_step
from pipelines.whole_files import write_json


def choose_weights(
    folder: RunFolder,
    last: int,
    best: str | None = None,
    averages: Mapping[str, np.ndarray] | None = None,
    measure: Callable[[Mapping[str, np.ndarray]], float] | None = None,
) -> str:
    """Write the weights that are scored and served, `folder.averaged`.

    Args:
        folder: the run's `RunFolder`.
        last: how many of the last checkpoints are averaged, if neither of the next two is given.
        best: take those of the best epoch by this measure.
        averages: arrays by name, those of a moving average.
        measure: takes weights by name, gives the validation cross-entropy; of 1 to `last` the
            number with the lowest is averaged. None: `last` are.

    Returns:
        What was chosen, in words.

    Raises:
        ValueError: if there is no such epoch.
    """
    if best:
        _require_best(folder, best)
        weights = averaging.average([folder.best])
        words = "best epoch"
    elif averages:
        weights = averages
        words = "moving average of the weights"
    else:
        checkpoints = averaging.last_ones(folder.checkpoints, last)
        reason = ""
        if measure and len(checkpoints) > 1:
            number, losses = averaging.best_number(checkpoints, measure)
            tried = ", ".join(f"{loss:.4g}" for loss in losses)
            reason = f", chosen of 1 to {len(losses)} by validation cross-entropy: {tried}"
            checkpoints = checkpoints[-number:]
        weights = averaging.average(checkpoints)
        words = averaging.of_steps(checkpoints) + reason
    folder.write_averaged(weights)
    return words


def _require_best(folder, measure):
    if kept_step(folder.best, f"val_{measure}") is None:
        raise ValueError(
            f"{folder.best} must hold the best epoch by --keep_best={measure}, and no epoch of "
            "this run was kept by it. Train longer (--max_steps, --max_minutes), or leave "
            "--keep_best out."
        )


def release(
    task: Task, folder: RunFolder, model: keras.Model, chosen: str, export_dir: pathlib.Path
) -> None:
    """Score the chosen weights on the test set, print what they do, and export them.

    Args:
        task: what was learned.
        folder: the run's `RunFolder`, with `averaged`.
        model: a float32 model of the task, which takes over the weights.
        chosen: what the weights are, in words.
        export_dir: folder of the model's versions.
    """
    folder.load_weights(model, folder.averaged)
    module = task.module(model)
    evaluation = task.evaluate(module)
    write_json(folder.evaluation, {"split": "test", **evaluation.scores, "weights": chosen})
    print("\n".join([f"{chosen}, {evaluation.report[0]}", *evaluation.report[1:]]))
    write_json(folder.examples, evaluation.examples)
    version = export(
        module,
        export_dir,
        {**folder.read_description(), **folder.read_scores()},
        folder.read_examples(),
    )
    usage = task.usage(version)
    print(f"\nexported to {version}." + (f" Try it:\n{usage}" if usage else ""))


def export_dir_of(folder: RunFolder, export_dir: str | None) -> pathlib.Path:
    """The folder of a model's versions: `export_dir`, or `saved_models/<name of the run>`."""
    return pathlib.Path(export_dir or f"saved_models/{folder.path.resolve().name}")
