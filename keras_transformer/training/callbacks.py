"""What watches over a run of `model.fit`: checkpoints (Vaswani et al. 2017, section 6.1),
validation, limits, divergence, preemption.
"""

import json
import math
import pathlib
import signal
import time

import keras

from keras_transformer.training import checkpoint


class Stopwatch:
    """Seconds that a run has trained, over all its sessions."""

    def __init__(self, seconds=0.0):
        self._started = time.monotonic() - seconds

    @property
    def seconds(self):
        return time.monotonic() - self._started


def end_training(model, preempted=False):
    """End `model.fit` with this step, or with the one that all hosts agree upon."""
    train_function = getattr(model, "train_function", None)
    if hasattr(train_function, "end_training"):
        train_function.end_training(preempted)
    else:
        model.stop_training = True


class StopOnDivergence(keras.callbacks.Callback):
    """Ends the run when the loss is no longer a number, before anything is saved."""

    def on_train_batch_end(self, batch, logs=None):
        if not math.isfinite(logs["loss"]):
            step = checkpoint.step_of(self.model)
            raise ValueError(
                f"The loss became {logs['loss']} at step {step}: training diverged. Lower "
                "--learning_rate_scale or raise --warmup_steps; "
                "the last checkpoint is from before and stays good."
            )


class StopAtLimit(keras.callbacks.Callback):
    """Ends training after so many minutes, those of earlier sessions counted in, or at a step.

    Args:
        stopwatch: the run's `Stopwatch`.
        minutes: most minutes.
        last_step: most steps.
    """

    def __init__(self, stopwatch, minutes, last_step):
        super().__init__()
        self.stopwatch = stopwatch
        self.minutes = minutes
        self.last_step = last_step

    @property
    def is_out_of_time(self):
        return self.stopwatch.seconds >= self.minutes * 60

    def on_train_batch_end(self, batch, logs=None):
        if checkpoint.step_of(self.model) >= self.last_step:
            self.model.stop_training = True
        elif self.is_out_of_time:
            end_training(self.model)


class Preempted(Exception):
    """The machine is about to be taken away, and everything is saved."""


class StopOnSignal(keras.callbacks.Callback):
    """On SIGTERM, which announces a preemption: the step is finished and saved, then training ends
    with `Preempted`, on all hosts.

    Stands behind `Checkpointing` in the list: what comes behind it at the end of an epoch,
    validation, is not waited for.

    Args:
        at_once: whether training ends at once when all is saved; else with the next step, in which
            all hosts learn of it.
    """

    def __init__(self, at_once=True):
        super().__init__()
        self.at_once = at_once
        self.is_asked = False
        self.is_saved = False

    def on_train_begin(self, logs=None):
        self.before = signal.signal(signal.SIGTERM, self.ask)

    def on_train_end(self, logs=None):
        signal.signal(signal.SIGTERM, self.before)

    def ask(self, number, frame):
        self.is_asked = True
        if self.is_saved and self.at_once:
            self.leave()
        end_training(self.model, preempted=True)

    def leave(self):
        # `model.fit` does not come to the end of training.
        self.on_train_end()
        raise Preempted

    def on_epoch_begin(self, epoch, logs=None):
        self.is_saved = False

    def on_epoch_end(self, epoch, logs=None):
        self.is_saved = True
        if (self.is_asked and self.at_once) or getattr(
            self.model.train_function, "is_preempted", False
        ):
            self.leave()


class Checkpointing(keras.callbacks.Callback):
    """Saves the whole state at the end of every epoch and every so many minutes, and keeps the last
    K.

    A checkpoint that cannot be written, for a full disk, is told; training goes on, and those
    before stay.

    Args:
        folder: where the checkpoints lie.
        stopwatch: the run's `Stopwatch`, saved with each.
        keep: K, at least 1.
        minutes: between two checkpoints inside an epoch.
        batches_before: takes a step, gives how many batches were seen before it.
        report: takes a line for the user.
    """

    def __init__(
        self, folder, stopwatch, keep, minutes, batches_before=lambda step: step, report=print
    ):
        super().__init__()
        self.folder = folder
        self.stopwatch = stopwatch
        self.keep = keep
        self.minutes = minutes
        self.batches_before = batches_before
        self.report = report
        self.saved_at = stopwatch.seconds
        self.saved_step = None

    def on_train_begin(self, logs=None):
        # What a killed run left half written.
        for stale in pathlib.Path(self.folder).glob(".step-*.tmp"):
            stale.unlink()

    def on_train_batch_end(self, batch, logs=None):
        if self.stopwatch.seconds - self.saved_at >= self.minutes * 60:
            self.save()

    def on_epoch_end(self, epoch, logs=None):
        self.save()

    def save(self):
        self.saved_at = self.stopwatch.seconds
        step = checkpoint.step_of(self.model)
        progress = {
            "step": step,
            "batches": self.batches_before(step),
            "seconds": self.stopwatch.seconds,
        }
        try:
            checkpoint.save(checkpoint.path_of(self.folder, step), self.model, progress)
        except OSError as error:
            self.report(
                f"step {step} could not be saved: {error}. Training goes on; the checkpoints "
                "before it stay. Make room."
            )
            return
        self.saved_step = step
        for old in checkpoint.checkpoints(self.folder)[: -self.keep]:
            old.unlink()


class Validation(keras.callbacks.Callback):
    """Measures the model after every epoch, and keeps the results in a file of one JSON object a
    line.

    Args:
        measure: takes the model, gives a dictionary of numbers.
        path: the file that results are appended to.
        report: takes a line for the user.
    """

    def __init__(self, measure, path, report=print):
        super().__init__()
        self.measure = measure
        self.path = pathlib.Path(path)
        self.report = report

    def on_epoch_end(self, epoch, logs=None):
        logs.update({f"val_{name}": value for name, value in self.measure(self.model).items()})
        logs.pop("tokens", None)
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
