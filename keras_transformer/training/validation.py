"""The measures of a run after each epoch, its best weights, and its end when they improve no more:
all is chosen "on the development set" (Vaswani et al. 2017, section 6.1).
"""

import contextlib
import dataclasses
import json
import math
import os
import pathlib

import keras
import numpy as np

from keras_transformer.training import checkpoint
from keras_transformer.training.ending import Ending
from keras_transformer.training.optimizer import averaged_weights
from pipelines.whole_files import errors_naming


class Validation(keras.callbacks.Callback):
    """Measure the model after every epoch, and append the results to the run's history, one JSON
    object a line. Numbers that are not finite are written as Python's `json` does: NaN, Infinity.
    """

    def __init__(self, measure, path, report=print):
        super().__init__()
        self.measure = measure
        self.path = pathlib.Path(path)
        self.report = report
        self.lost: list[str] = []

    def on_epoch_end(self, epoch, logs=None):
        logs.update({f"val_{name}": value for name, value in self.measure(self.model).items()})
        logs.pop("labels", None)
        step = checkpoint.step_of(self.model)
        numbers = {name: float(value) for name, value in logs.items()}
        line = json.dumps({"epoch": epoch + 1, "step": step, **numbers})
        try:
            with errors_naming(self.path), open(self.path, "a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            self.lost.append(f"the line of epoch {epoch + 1} in {self.path}")
            self.report(f"{self.path} could not be written: {error}.")
        words = "  ".join(f"{name} {value:.4g}" for name, value in logs.items())
        self.report(f"epoch {epoch + 1}  step {step}  {words}")


def read_results(path: str | os.PathLike) -> list[dict]:
    """Read the results that lead to the end of a run, from the history that `Validation` writes: a
    dictionary for each line, with an integer "step", steps ascending; none without a file.

    A run that was killed resumes from its last checkpoint and validates again what came after it: a
    line voids earlier lines of its own step or a later one. A line that was cut has the next one
    glued to it; what cannot be read is skipped.
    """
    path = pathlib.Path(path)
    if not path.exists():
        return []
    results: list[dict] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError):
            result = json.loads(line[line.rfind("{") :])
            result["step"] = int(result["step"])
            results = [old for old in results if old["step"] < result["step"]] + [result]
    return results


def validations(path, name, last_step):
    """List (step, value) of the results of a name such as "val_bleu", up to the step from which a
    run resumes. Later results will be measured again.
    """
    results = []
    for result in read_results(path):
        with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError):
            results.append((result["step"], float(result[name])))
    return [(step, value) for step, value in results if step <= last_step]


@dataclasses.dataclass(frozen=True)
class Standing:
    """The outcome of a run's validations: the best finite result, the step where it was measured,
    and how many validations since then were no better.
    """

    value: float | None = None
    step: int | None = None
    waited: int = 0

    def after(self, step, value, higher_is_better):
        """Return the standing after a validation. Equal, NaN and infinite results are no better."""
        if math.isfinite(value) and (
            self.value is None or (value > self.value if higher_is_better else value < self.value)
        ):
            return Standing(value, step, 0)
        return dataclasses.replace(self, waited=self.waited + 1)


class BestSoFar(keras.callbacks.Callback):
    """Keep the weights of the best validation, by the result `monitor`, in an archive that
    `checkpoint.load_weights` reads; end training after `patience` validations that were no better,
    None: never.

    It reads the results of `Validation`; after a restart, earlier ones from the history, up to the
    step from which the run resumes.
    """

    def __init__(
        self,
        ending: Ending,
        history_path,
        path,
        monitor: str,
        higher_is_better: bool,
        step: int,
        patience: int | None = None,
        report=print,
    ):
        super().__init__()
        if patience is not None and patience < 1:
            raise ValueError(
                f"`patience` must be at least 1 validation. Received: patience={patience}. Pass "
                "None to train on regardless."
            )
        self.ending = ending
        self.path = pathlib.Path(path)
        self.monitor = monitor
        self.higher_is_better = higher_is_better
        self._name = f"val_{monitor}"
        self.patience = patience
        self.report = report
        self.standing = Standing()
        for measured_at, value in validations(history_path, self._name, step):
            self.standing = self.standing.after(measured_at, value, higher_is_better)
        self._kept_step = kept_step(self.path, self._name)
        best = self.standing.step
        is_kept = self._kept_step is not None and best is not None and self._kept_step >= best
        if best not in (None, step) and not is_kept:
            report(
                f"{self.path} lacks the best weights of step {best}, or is damaged: the search for "
                "the best starts again."
            )
            self.standing = Standing()

    @property
    def lost(self) -> list[str]:
        best = self.standing.step
        if best is None or best == self._kept_step:
            return []
        return [f"the best weights, of step {best}, in {self.path}"]

    @property
    def is_over(self):
        """Whether patience is spent. `model.fit` forgets that it was stopped."""
        return self.patience is not None and self.standing.waited >= self.patience

    def on_train_begin(self, logs=None):
        """Keep the weights of this step if they are best, but a kill prevented the archive."""
        if self.standing.step == checkpoint.step_of(self.model) != self._kept_step:
            self._keep()

    def on_epoch_end(self, epoch, logs=None):
        name = self._name
        if name not in (logs or {}):
            raise ValueError(
                f"`monitor`={self.monitor!r} needs {name}, which was not measured. Received: "
                f"{', '.join(sorted(logs or {})) or 'nothing'}. "
                "Monitor one of these."
            )
        step = checkpoint.step_of(self.model)
        self.standing = self.standing.after(step, float(logs[name]), self.higher_is_better)
        if self.standing.step == step:
            self._keep()
        if self.is_over:
            best = "none was a number"
            if self.standing.step is not None:
                best = f"the best was {self.standing.value:.4g} at step {self.standing.step}"
            self.report(
                f"{name} has not improved for {self.standing.waited} validations; {best}. "
                "Training ends."
            )
            self.ending.ask()

    def _keep(self):
        progress = {"step": self.standing.step, self._name: self.standing.value}
        arrays = {**averaged_weights(self.model), "progress": np.array(json.dumps(progress))}
        try:
            checkpoint.write_archive(self.path, arrays)
        except OSError as error:
            self.report(
                f"the best weights, of step {self.standing.step}, could not be saved: {error}. "
                f"Training continues. {checkpoint.remedy_of(error)}"
            )
            return
        self._kept_step = self.standing.step


def kept_step(path: pathlib.Path, name: str) -> int | None:
    """Return the step of the weights that `BestSoFar` kept by a result such as "val_bleu"; None if
    there is no such file, it is damaged, or another result chose its weights.
    """
    try:
        progress = json.loads(str(checkpoint.read_archive(path)["progress"]))
        return progress["step"] if name in progress else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
