"""When a run of `model.fit` must stop (Vaswani et al. 2017, section 5.2: "We trained the base
models for a total of 100,000 steps or 12 hours"): divergence, time, steps.
"""

import math
import time

from keras_transformer.training import checkpoint
from keras_transformer.training.ending import Ending
from keras_transformer.training.watcher import Watcher


class Stopwatch:
    """Seconds that a run has trained, over all its sessions."""

    def __init__(self, seconds=0.0):
        self._started = time.monotonic() - seconds

    @property
    def seconds(self):
        return time.monotonic() - self._started


class StopOnDivergence(Watcher):
    """End the run when the loss is no longer a number, before anything is saved."""

    def on_train_batch_end(self, batch, logs=None):
        if not math.isfinite(logs["loss"]):
            raise diverged(f"The loss became {logs['loss']}", checkpoint.step_of(self.model))


def diverged(what: str, step: int) -> ValueError:
    """The error of a run that diverged.

    Args:
        what: what is no longer finite, in words.
        step: at which it was seen.
    """
    return ValueError(
        f"{what} at step {step}: training diverged. Lower --learning_rate or "
        "--learning_rate_scale, or raise --warmup_steps. If it happens again at once, delete the "
        "newest checkpoint."
    )


class StopAtLimit(Watcher):
    """End training after a time or at a step, whichever comes first.

    Args:
        ending: the run's `Ending`.
        stopwatch: the run's `Stopwatch`.
        minutes: most minutes, those of earlier sessions included.
        last_step: most steps.
    """

    def __init__(self, ending: Ending, stopwatch: Stopwatch, minutes: float, last_step: float):
        super().__init__()
        self.ending = ending
        self.stopwatch = stopwatch
        self.minutes = minutes
        self.last_step = last_step

    @property
    def is_out_of_time(self):
        return self.stopwatch.seconds >= self.minutes * 60

    def on_train_batch_end(self, batch, logs=None):
        if checkpoint.step_of(self.model) >= self.last_step:
            # All hosts are at the same step: none has to be asked.
            self.model.stop_training = True
        elif self.is_out_of_time:
            self.ending.ask()
