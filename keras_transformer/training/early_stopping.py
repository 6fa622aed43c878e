"""The best weights of a run, and its end when they get no better.

Both are chosen "on the development set", as all else (Vaswani et al. 2017, section 6.1).
"""

import dataclasses
import json
import math
import pathlib

import numpy as np

from keras_transformer.training import checkpoint
from keras_transformer.training.callbacks import Validation
from keras_transformer.training.checkpointing import Checkpointing
from keras_transformer.training.ending import Ending
from keras_transformer.training.history import read_results
from keras_transformer.training.optimizer import averaged_weights
from keras_transformer.training.watcher import Watcher


@dataclasses.dataclass(frozen=True)
class Standing:
    """What a run's validations amount to.

    Attributes:
        value: the best result; None before there is a finite one.
        step: where it was measured.
        waited: validations since then that were no better.
    """

    value: float | None = None
    step: int | None = None
    waited: int = 0

    def after(self, step, value, higher_is_better):
        """The standing after one more validation. An equal result is no better, and a NaN or
        infinite one never is.
        """
        if math.isfinite(value) and (
            self.value is None or (value > self.value if higher_is_better else value < self.value)
        ):
            return Standing(value, step, 0)
        return dataclasses.replace(self, waited=self.waited + 1)


def validations(path, name, last_step):
    """The results that lead to a step of a run. Lines beyond `last_step` are still to be repeated.

    Args:
        path: see `history.read_results`.
        name: of the result, such as "val_bleu".
        last_step: the step that the run resumes from.

    Returns:
        List of (step, value), steps ascending.
    """
    found = []
    for result in read_results(path):
        try:
            found.append((result["step"], float(result[name])))
        except (ValueError, KeyError, TypeError):
            continue
    return [(step, value) for step, value in found if step <= last_step]


class BestSoFar(Watcher):
    """Keep the weights of the best validation; end training after so many that were no better.

    It reads the results of `callbacks.Validation`. What a killed run knew is read back from its
    history.

    Args:
        ending: the run's `Ending`.
        history_path: the file that `Validation` appends to.
        path: where the weights are kept, an archive that `checkpoint.load_weights` reads.
        monitor: name of the result that decides, such as "bleu".
        higher_is_better: whether more of it is better.
        step: the step that the run resumes from.
        patience: validations without improvement after which training ends; None: it does not.
        report: takes a line for the user.

    Raises:
        ValueError: if `patience` is below 1; in training, if what is monitored is not measured.
    """

    BEHIND = (Checkpointing, Validation)

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
        if (
            best is not None
            and best != step
            and (self._kept_step is None or self._kept_step < best)
        ):
            report(
                f"{self.path} lacks the best weights of step {best}, or is damaged: the best is "
                "sought anew."
            )
            self.standing = Standing()

    @property
    def lost(self) -> list[str]:
        """What could not be written, in words: the best weights."""
        best = self.standing.step
        if best is None or best == self._kept_step:
            return []
        return [f"the best weights, of step {best}, in {self.path}"]

    @property
    def is_over(self):
        """Whether patience is spent. `model.fit` forgets that it was stopped: ask before calling it
        again.
        """
        return self.patience is not None and self.standing.waited >= self.patience

    def on_train_begin(self, logs=None):
        """Keep the weights of this step if they are the best and a kill came between their line in
        the history and the archive.
        """
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
            best = (
                "none was a number"
                if self.standing.step is None
                else f"the best was {self.standing.value:.4g} at step {self.standing.step}"
            )
            self.report(
                f"{name} has not improved for {self.standing.waited} validations; {best}. "
                "Training ends."
            )
            self.ending.ask()

    def _keep(self):
        progress = {"step": self.standing.step, self._name: self.standing.value}
        try:
            checkpoint.write_archive(
                self.path,
                {**averaged_weights(self.model), "progress": np.array(json.dumps(progress))},
            )
        except OSError as error:
            self.report(
                f"the best weights, of step {self.standing.step}, could not be saved: {error}. "
                f"Training continues. {checkpoint.remedy_of(error)}"
            )
            return
        self._kept_step = self.standing.step


def kept_step(path: pathlib.Path, name: str) -> int | None:
    """The step of the weights that `BestSoFar` kept by a result such as "val_bleu".

    Args:
        path: the file.
        name: the result.

    Returns:
        None if there is no such file, it is damaged, or another result chose its weights.
    """
    try:
        progress = json.loads(str(checkpoint.read_archive(path)["progress"]))
        return progress["step"] if name in progress else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
