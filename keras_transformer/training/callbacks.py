"""What watches over a run of `model.fit`: checkpoints (Vaswani et al. 2017, section 6.1), validation, time limit, divergence."""

import json
import math
import pathlib
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


class StopOnDivergence(keras.callbacks.Callback):
    """Ends the run when the loss is no longer a number, before anything is saved."""

    def on_train_batch_end(self, batch, logs=None):
        if not math.isfinite(logs["loss"]):
            step = int(self.model.optimizer.iterations)
            raise ValueError(
                f"The loss became {logs['loss']} at step {step}: training diverged. Lower --learning_rate_scale or raise --warmup_steps; "
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

    def on_train_batch_end(self, batch, logs=None):
        if self.stopwatch.seconds >= self.minutes * 60 or int(self.model.optimizer.iterations) >= self.last_step:
            self.model.stop_training = True


class Checkpointing(keras.callbacks.Callback):
    """Saves the whole state at the end of every epoch and every so many minutes, and keeps the last K.

    Args:
        folder: where the checkpoints lie.
        stopwatch: the run's `Stopwatch`, saved with each.
        keep: K, at least 1.
        minutes: between two checkpoints inside an epoch.
    """

    def __init__(self, folder, stopwatch, keep, minutes):
        super().__init__()
        self.folder = folder
        self.stopwatch = stopwatch
        self.keep = keep
        self.minutes = minutes
        self.saved_at = stopwatch.seconds

    def on_train_batch_end(self, batch, logs=None):
        if self.stopwatch.seconds - self.saved_at >= self.minutes * 60:
            self.save()

    def on_epoch_end(self, epoch, logs=None):
        self.save()

    def save(self):
        step = int(self.model.optimizer.iterations)
        checkpoint.save(checkpoint.path_of(self.folder, step), self.model, {"step": step, "seconds": self.stopwatch.seconds})
        for old in checkpoint.checkpoints(self.folder)[: -self.keep]:
            old.unlink()
        self.saved_at = self.stopwatch.seconds


class Validation(keras.callbacks.Callback):
    """Measures the model after every epoch, and keeps the results in a file of one JSON object a line.

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
        step = int(self.model.optimizer.iterations)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"epoch": epoch + 1, "step": step, **{name: float(value) for name, value in logs.items()}}) + "\n")
        self.report(f"epoch {epoch + 1}  step {step}  " + "  ".join(f"{name} {value:.4g}" for name, value in logs.items()))
