"""The progress of a run (Vaswani et al. 2017, section 5.2), drawn with rich."""

import contextlib
import math
import sys
import time

import keras
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from keras_transformer.training import checkpoint

LINE_EVERY_SECONDS = 30


class ProgressBar(keras.callbacks.Callback):
    """One bar for the whole run: loss, accuracy, labels a second, learning rate, time left. On a
    terminal it is a bar; in a pipe or a file, a line every half minute. `labels` is the user's word
    for labels, such as "target tokens".
    """

    def __init__(
        self, last_step, stopwatch, max_minutes=math.inf, console=None, labels="target tokens"
    ):
        super().__init__()
        self.last_step = last_step
        self.stopwatch = stopwatch
        self.max_minutes = max_minutes
        self.console = console or Console()
        self.labels = labels
        self.can_print = True
        words = TextColumn("{task.description}", table_column=Column(no_wrap=False))
        self.bar = Progress(BarColumn(24), words, console=self.console, auto_refresh=False)
        # A run that resumes inside an epoch is two calls of `fit`, and still one bar.
        self.task = self.bar.add_task("", total=1.0)

    def on_train_begin(self, logs=None):
        self.step = self.first_step = checkpoint.step_of(self.model)
        self.label_count = self.count_before_epoch = 0.0
        self.training_seconds = 0.0
        self.printed_at = time.monotonic()
        if self.console.is_terminal:
            self.bar.start()

    def on_train_batch_begin(self, batch, logs=None):
        self.batch_began = time.monotonic()

    def on_epoch_begin(self, epoch, logs=None):
        self.count_before_epoch = self.label_count

    def on_train_batch_end(self, batch, logs=None):
        now = time.monotonic()
        self.step += 1
        self.training_seconds += now - self.batch_began
        self.label_count = self.count_before_epoch + float(logs["labels"])
        if self.console.is_terminal:
            self.bar.update(
                self.task, completed=self.share_done(), description=self.line(logs), refresh=True
            )
        elif now - self.printed_at >= LINE_EVERY_SECONDS:
            self.printed_at = now
            self.report(self.line(logs))

    def on_train_end(self, logs=None):
        if self.console.is_terminal:
            self.bar.stop()

    def report(self, line):
        """Print a line without tearing the bar. If it cannot be printed, training goes on."""
        try:
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)
        except (OSError, SystemExit):
            # If the reader has left, such as `head`, rich raises SystemExit and prints no more.
            if self.can_print:
                with contextlib.suppress(OSError):
                    print("training goes on; standard output cannot be written", file=sys.stderr)
            self.can_print = False

    def share_done(self):
        """Return the share of the run that is done, in [0, 1], by the nearer limit."""
        share = max(self.step / self.last_step, self.stopwatch.seconds / 60 / self.max_minutes)
        return min(1.0, share)

    def line(self, logs):
        here = self.step - self.first_step
        left = min(
            (self.last_step - self.step) * self.training_seconds / max(here, 1),
            self.max_minutes * 60 - self.stopwatch.seconds,
        )
        rate = self.label_count / max(self.training_seconds, 1e-9)
        return (
            f"step {self.step}  loss {logs['loss']:.3f}  accuracy {logs['accuracy']:.3f}  "
            f"{rate:,.0f} {self.labels}/s  learning rate "
            f"{float(np.asarray(self.model.optimizer.learning_rate)):.2e}  {_clock(left)} left"
        )


def _clock(seconds):
    minutes, seconds = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
