"""Checkpoints, and which of them are averaged later (Vaswani et al. 2017, section 6.1)."""

import dataclasses
import math
import pathlib

import keras

from keras_transformer.training import checkpoint
from keras_transformer.training.ending import diverged


@dataclasses.dataclass(frozen=True)
class Window:
    """The last `share` of a run, in which `count` checkpoints to average are written evenly;
    the last one is the run's end. How much of a run is done, from 0 to 1, is measured by the nearer
    limit, `seconds` or `steps`.
    """

    seconds: float
    share: float
    count: int
    steps: float = math.inf

    def share_done(self, seconds: float, step: int) -> float:
        return max(seconds / self.seconds, step / self.steps)

    @property
    def begin(self) -> float:
        """The share done at which the first one is due."""
        return 1 - (self.count - 1) * self.share / self.count

    def next_after(self, share: float) -> float:
        """Return the share done at which the next one is due before the run's end, or infinity."""
        due = (1 - left * self.share / self.count for left in range(self.count - 1, 0, -1))
        return next((begin for begin in due if begin > share), math.inf)


class Checkpointing(keras.callbacks.Callback):
    """Save the whole state every M minutes and at the end of every epoch.

    Some of the checkpoints are averaged later: those of the run's last share, if the run is limited
    by minutes ("checkpoints, which were written at 10-minute intervals", section 6.1, cover the
    last 7 % of the paper's run); else those of every M minutes; or those of the epochs. The last K
    of these are kept, and the last two of all: if the newest is damaged, the run resumes from the
    one before. Minutes are counted over the whole run, so no session or epoch shifts them.

    If a checkpoint cannot be written, because the disk is full, a line says so, training continues,
    and the checkpoints before it stay. `require_saved` fails if the run's end cannot be saved.

    Args:
        folder: the folder of the checkpoints.
        stopwatch: the run's `Stopwatch`, saved with each.
        keep: K, at least 1.
        minutes: M; 0: after every step.
        average_over: what is averaged, "minutes" or "epochs".
        report: takes a line for the user.
        window: the `Window` of the run's end whose checkpoints are averaged; None: there is none.
    """

    def __init__(
        self,
        folder,
        stopwatch,
        keep,
        minutes,
        average_over="minutes",
        report=print,
        window: Window | None = None,
    ):
        super().__init__()
        self.folder = pathlib.Path(folder)
        self.stopwatch = stopwatch
        self.keep = keep
        self.minutes = minutes
        self.average_over = average_over
        self.report = report
        self.window = window
        self.saved_step = None
        self._batches = 0

    def on_train_begin(self, logs=None):
        # Files that a killed run left half written, also of the best and the averaged weights.
        for stale in (*self.folder.glob(".*.npz.*.tmp"), *self.folder.parent.glob(".*.npz.*.tmp")):
            stale.unlink()
        # A checkpoint newer than the step from which the run resumes could not be read. It must
        # neither be averaged nor take the place of a good one.
        for path in checkpoint.checkpoints(self.folder):
            if checkpoint.step_in(path) > checkpoint.step_of(self.model):
                path.replace(path.with_name(f"{path.name}.damaged"))
        if self.window:
            self._exclude_earlier()
        self._plan()

    def _exclude_earlier(self):
        """Exclude checkpoints before the window from the average: a run that had ended goes on."""
        for path in checkpoint.checkpoints_to_average(self.folder):
            try:
                seconds = checkpoint.progress_of(path)["seconds"]
                step = checkpoint.step_in(path)
                is_before = self.window.share_done(seconds, step) < self.window.begin
            except ValueError:
                is_before = True
            if is_before:
                path.replace(checkpoint.path_of(self.folder, checkpoint.step_in(path), False))

    def on_train_batch_end(self, batch, logs=None):
        self._batches = batch + 1
        is_end = self._share_done() >= self._due_at_end
        if is_end or self.stopwatch.seconds >= self._due:
            self._plan()
            self.save(is_end or (self.average_over == "minutes" and self.window is None))

    def on_epoch_end(self, epoch, logs=None):
        is_whole = self._batches == self.params["steps"]
        averaged = self.average_over == "epochs" and is_whole
        if averaged or self.saved_step != checkpoint.step_of(self.model):
            self.save(averaged)

    def keep_epoch(self, step: int, steps_per_epoch: int) -> None:
        """Count the checkpoint from which a run resumes among those to average, if the run was
        killed between the timed save of an epoch's last step and the save of the epoch.
        """
        if self.average_over == "epochs" and step and step % steps_per_epoch == 0:
            self._average(step)

    def require_saved(self, model: keras.Model) -> None:
        step = checkpoint.step_of(model)
        paths = [checkpoint.path_of(self.folder, step, averaged) for averaged in (True, False)]
        if step and not any(path.exists() for path in paths):
            self._write(paths[1], model)

    def keep_end(self, step: int) -> None:
        if self.window:
            self._average(step)

    def _average(self, step):
        to_resume = checkpoint.path_of(self.folder, step, averaged=False)
        to_average = checkpoint.path_of(self.folder, step)
        if to_resume.exists() and not to_average.exists():
            to_resume.rename(to_average)

    def _plan(self):
        """Set when the next checkpoints are due: in seconds of the run, and by the share done."""
        interval = self.minutes * 60
        self._due = (self.stopwatch.seconds // interval + 1) * interval if interval else 0
        self._due_at_end = self.window.next_after(self._share_done()) if self.window else math.inf

    def _share_done(self):
        step = checkpoint.step_of(self.model)
        return self.window.share_done(self.stopwatch.seconds, step) if self.window else 0.0

    def save(self, averaged: bool) -> None:
        """Write a checkpoint of this step, and delete those that need not be kept."""
        step = checkpoint.step_of(self.model)
        path = checkpoint.path_of(self.folder, step, averaged)
        try:
            self._write(path, self.model)
        except OSError as error:
            self.report(
                f"step {step} could not be saved: {error}. Training continues; the checkpoints "
                f"before it stay. {checkpoint.remedy_of(error)}"
            )
            return
        paths = checkpoint.checkpoints(self.folder)
        # If a step has a checkpoint of either kind, this is the one to average.
        of_step = {checkpoint.step_in(path): path for path in reversed(paths)}
        last_two = [of_step[step] for step in sorted(of_step)[-2:]]
        needed = {path, *last_two, *checkpoint.checkpoints_to_average(self.folder)[-self.keep :]}
        for old in paths:
            if old not in needed:
                old.unlink()

    def _write(self, path, model):
        step = checkpoint.step_of(model)
        try:
            checkpoint.save(path, model, {"step": step, "seconds": self.stopwatch.seconds})
        except FloatingPointError as error:
            # The gradient of an update may be infinite although its loss is finite.
            raise diverged(str(error), step) from error
        self.saved_step = step
