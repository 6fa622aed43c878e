"""What watches over a run of `model.fit`: checkpoints (Vaswani et al. 2017, section 6.1),
preemption, validation.
"""

import json
import math
import pathlib
import signal

from keras_transformer.training import checkpoint
from keras_transformer.training.ending import Ending, Preempted
from keras_transformer.training.limits import StopAtLimit, StopOnDivergence, diverged
from keras_transformer.training.watcher import Watcher


class Checkpointing(Watcher):
    """Save the whole state every M minutes and at the end of every epoch.

    One of the two kinds is averaged later: "checkpoints, which were written at 10-minute intervals"
    (section 6.1), or those of the epochs. The last K of this kind are kept, and the last two of
    both kinds: if the newest is damaged, the run resumes from the one before. The minutes are those
    of the whole run, so an epoch's end or a new session does not shift them.

    If a checkpoint cannot be written, because the disk is full, a line says so, training continues,
    and the checkpoints before it stay.

    Args:
        folder: where the checkpoints lie.
        stopwatch: the run's `Stopwatch`, saved with each.
        keep: K, at least 1.
        minutes: M; 0: after every step.
        average_over: the kind that is averaged, "minutes" or "epochs".
        report: takes a line for the user.
    """

    # What diverged is not saved.
    BEHIND = (StopOnDivergence, StopAtLimit)

    def __init__(self, folder, stopwatch, keep, minutes, average_over="minutes", report=print):
        super().__init__()
        self.folder = folder
        self.stopwatch = stopwatch
        self.keep = keep
        self.minutes = minutes
        self.average_over = average_over
        self.report = report
        self.saved_step = None
        self._batches = 0
        self._due = self._next()

    def on_train_begin(self, logs=None):
        folder = pathlib.Path(self.folder)
        # What a killed run left half written, the best and the averaged weights beside.
        for stale in (*folder.glob(".*.npz.*.tmp"), *folder.parent.glob(".*.npz.*.tmp")):
            stale.unlink()
        # What is newer than the step that the run resumes from could not be read. It must neither
        # be averaged nor take the place of a good one.
        for path in checkpoint.checkpoints(folder):
            if checkpoint.step_in(path) > checkpoint.step_of(self.model):
                path.replace(path.with_name(f"{path.name}.damaged"))

    def on_train_batch_end(self, batch, logs=None):
        self._batches = batch + 1
        if self.stopwatch.seconds >= self._due:
            self._due = self._next()
            self.save(averaged=self.average_over == "minutes")

    def on_epoch_end(self, epoch, logs=None):
        is_whole = self._batches == self.params["steps"]
        averaged = self.average_over == "epochs" and is_whole
        if averaged or self.saved_step != checkpoint.step_of(self.model):
            self.save(averaged)

    def keep_epoch(self, step: int, steps_per_epoch: int) -> None:
        """Count a checkpoint among those that are averaged, where a kill fell between the clock's
        save of an epoch's last step and the save of the epoch.

        Args:
            step: that the run resumes from.
            steps_per_epoch: steps.
        """
        saved = checkpoint.path_of(self.folder, step, averaged=False)
        kept = checkpoint.path_of(self.folder, step)
        is_whole = step > 0 and step % steps_per_epoch == 0
        if self.average_over == "epochs" and is_whole and saved.exists() and not kept.exists():
            saved.rename(kept)

    def _next(self):
        """When the next checkpoint of the minutes is due, in seconds of the run."""
        if not self.minutes or math.isinf(self.minutes):
            return self.minutes
        interval = self.minutes * 60
        return (self.stopwatch.seconds // interval + 1) * interval

    def save(self, averaged: bool) -> None:
        """Write a checkpoint of this step, and delete those that are not kept any more.

        Args:
            averaged: whether it is of the kind that is averaged.

        Raises:
            ValueError: if a weight is not finite.
        """
        step = checkpoint.step_of(self.model)
        progress = {"step": step, "seconds": self.stopwatch.seconds}
        path = checkpoint.path_of(self.folder, step, averaged)
        try:
            checkpoint.save(path, self.model, progress)
        except FloatingPointError as error:
            # The gradient of an update may be infinite while its loss is not.
            raise diverged(str(error), step) from error
        except OSError as error:
            self.report(
                f"step {step} could not be saved: {error}. Training continues; the checkpoints "
                f"before it stay. {checkpoint.remedy_of(error)}"
            )
            return
        self.saved_step = step
        every = checkpoint.checkpoints(self.folder)
        # Of a step that both kinds have, this is the one that is averaged.
        of_step = {checkpoint.step_in(path): path for path in reversed(every)}
        last_two = [of_step[step] for step in sorted(of_step)[-2:]]
        kept = {path, *last_two, *checkpoint.averaged_ones(self.folder)[-self.keep :]}
        for old in every:
            if old not in kept:
                old.unlink()


class StopOnSignal(Watcher):
    """On SIGTERM, which announces a preemption, finish the step, save it, and end training with
    `Preempted`, on all hosts.

    Args:
        ending: the run's `Ending`.
        at_once: whether training ends as soon as all is saved; else with the next step, in which
            all hosts learn of it.
    """

    BEHIND = (Checkpointing,)

    def __init__(self, ending: Ending, at_once: bool = True):
        super().__init__()
        self.ending = ending
        self.at_once = at_once
        self.is_asked = False
        self.is_saved = False

    def on_train_begin(self, logs=None):
        self.before = signal.signal(signal.SIGTERM, self.ask)

    def on_train_end(self, logs=None):
        signal.signal(signal.SIGTERM, self.before)

    def ask(self, number, frame):
        """Handle the signal."""
        self.is_asked = True
        if self.is_saved and self.at_once:
            self.leave()
        self.ending.ask(preempted=True)

    def leave(self):
        """End training, and raise `Preempted`."""
        # `model.fit` does not come to the end of training.
        self.on_train_end()
        raise Preempted

    def on_epoch_begin(self, epoch, logs=None):
        self.is_saved = False

    def on_epoch_end(self, epoch, logs=None):
        self.is_saved = True
        if (self.is_asked and self.at_once) or self.ending.is_preempted:
            self.leave()


class Validation(Watcher):
    """Measure the model after every epoch, and append the results to a file, one JSON object a
    line. Numbers that are not finite are written as Python's `json` does: NaN, Infinity.

    Args:
        measure: takes the model, gives a dictionary of numbers.
        path: the file that results are appended to.
        report: takes a line for the user.
    """

    # A preempted run is saved, and does not wait for what validation takes.
    BEHIND = (Checkpointing, StopOnSignal)

    def __init__(self, measure, path, report=print):
        super().__init__()
        self.measure = measure
        self.path = pathlib.Path(path)
        self.report = report

    def on_epoch_end(self, epoch, logs=None):
        logs.update({f"val_{name}": value for name, value in self.measure(self.model).items()})
        logs.pop("labels", None)
        step = checkpoint.step_of(self.model)
        line = json.dumps(
            {
                "epoch": epoch + 1,
                "step": step,
                **{name: float(value) for name, value in logs.items()},
            }
        )
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            self.report(f"{self.path} could not be written: {error}.")
        self.report(
            f"epoch {epoch + 1}  step {step}  "
            + "  ".join(f"{name} {value:.4g}" for name, value in logs.items())
        )
