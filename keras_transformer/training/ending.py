"""How a run of `model.fit` ends: by a limit, divergence, or a signal (section 5.2 of Vaswani et al.
2017: "We trained the base models for a total of 100,000 steps or 12 hours").
"""

import math
import signal
import time

import keras

from keras_transformer.training import checkpoint


class Preempted(Exception):
    """The machine will be taken away, and everything is saved."""


class Ending:
    """Ends `model.fit` when a callback asks for it; on several hosts, after the same step, because
    any of them may be preempted.

    If one host stopped alone, the others would wait for it. So the step itself adds up the votes of
    all hosts: all learn of a request there, and stop after that step. A host's votes are whether it
    asks for an end, and whether it does so because of a preemption; each 0.0 or 1.0.
    """

    def __init__(self, model: keras.Model, several_hosts: bool = False):
        self.model = model
        self.several_hosts = several_hosts
        self.votes = [0.0, 0.0]
        self.is_preempted = False

    def ask(self, preempted: bool = False) -> None:
        """End training after the current step, because of a preemption or not."""
        self.votes = [1.0, float(preempted)]
        if not self.several_hosts:
            self.model.stop_training = True

    def count(self, stop: float, preempted: float) -> None:
        """Take the sums of all hosts' votes of a step."""
        if stop:
            self.model.stop_training = True
        self.is_preempted = bool(preempted)


class Stopwatch:
    """Seconds that a run has trained, over all its sessions."""

    def __init__(self, seconds=0.0):
        self._started = time.monotonic() - seconds

    @property
    def seconds(self):
        return time.monotonic() - self._started


class StopOnDivergence(keras.callbacks.Callback):
    """End the run when the loss is no longer a number, before anything is saved."""

    def on_train_batch_end(self, batch, logs=None):
        if not math.isfinite(logs["loss"]):
            raise diverged(f"The loss became {logs['loss']}", checkpoint.step_of(self.model))


def diverged(reason: str, step: int) -> ValueError:
    """Make the error of a run that diverged, from what became infinite or NaN, and the step."""
    return ValueError(
        f"{reason} at step {step}: training diverged. Lower --learning_rate or "
        "--learning_rate_scale, or raise --warmup_steps. If it happens again at once, delete the "
        "newest checkpoint."
    )


class StopAtLimit(keras.callbacks.Callback):
    """End training after so many minutes of all sessions, or at a step, whichever comes first."""

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
            # All hosts are at the same step, so they need not vote.
            self.model.stop_training = True
        elif self.is_out_of_time:
            self.ending.ask()


class StopOnSignal(keras.callbacks.Callback):
    """On SIGTERM, which announces a preemption, finish the step, save it, and end training with
    `Preempted`, on all hosts: `at_once` as soon as all is saved; else with the next step, in which
    all hosts learn of it.
    """

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
        self.is_asked = True
        if self.is_saved and self.at_once:
            self.leave()
        self.ending.ask(preempted=True)

    def leave(self):
        # The exception prevents `model.fit` from calling this.
        self.on_train_end()
        raise Preempted

    def on_epoch_begin(self, epoch, logs=None):
        self.is_saved = False

    def on_epoch_end(self, epoch, logs=None):
        self.is_saved = True
        if (self.is_asked and self.at_once) or self.ending.is_preempted:
            self.leave()
