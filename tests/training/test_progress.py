"""The progress of a run, as a terminal and as a log file see it."""

import io
import math
import re
import types

import pytest
from rich.console import Console

from keras_transformer.training import progress

LOGS = {"loss": 3.25, "accuracy": 0.5, "labels": 2000.0}
PARTS = (
    *("step 1", "loss 3.250", "accuracy 0.500"),
    *("1,000 target tokens/s", "learning rate 1.50e-03", "0:18 left"),
)


@pytest.fixture
def clock(monkeypatch):
    clock = types.SimpleNamespace(monotonic=lambda: clock.now, now=0.0)
    monkeypatch.setattr(progress, "time", clock)
    return clock


def bar(clock, terminal=False, width=200, last_step=10, minutes=math.inf, iterations=0):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width)
    stopwatch = types.SimpleNamespace(seconds=0.0)
    bar = progress.ProgressBar(last_step, stopwatch, minutes, console)
    bar.set_model(
        types.SimpleNamespace(
            optimizer=types.SimpleNamespace(iterations=iterations, learning_rate=1.5e-3)
        )
    )
    bar.on_train_begin()
    bar.on_epoch_begin(0)
    return bar


def batch(bar, clock, seconds, logs=LOGS):
    bar.on_train_batch_begin(0)
    clock.now += seconds
    bar.stopwatch.seconds += seconds
    bar.on_train_batch_end(0, logs)


def written(bar):
    """What was written, less the terminal's control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", bar.console.file.getvalue())


def test_the_line_shows_loss_accuracy_speed_learning_rate_and_time_left(clock):
    watcher = bar(clock)
    batch(watcher, clock, seconds=2.0)
    assert watcher.line(LOGS) == "  ".join(PARTS)


def test_the_bar_is_full_at_the_last_step(clock):
    watcher = bar(clock, terminal=True, last_step=2)
    shares = []
    for _ in range(2):
        batch(watcher, clock, seconds=1.0)
        shares.append(watcher.bar.tasks[0].percentage)
    assert shares == [50.0, 100.0]


@pytest.mark.parametrize("width", [80, 200])
def test_a_terminal_shows_all_of_it(clock, width):
    watcher = bar(clock, terminal=True, width=width)
    batch(watcher, clock, seconds=2.0)
    watcher.on_train_end()
    shown = " ".join(written(watcher).split())
    assert [part for part in PARTS if part not in shown] == []


def test_a_log_file_gets_a_line_every_half_minute(clock):
    watcher = bar(clock, last_step=100)
    for _ in range(9):
        batch(watcher, clock, seconds=10.0)
    watcher.on_train_end()
    lines = written(watcher).splitlines()
    assert [line.split("  ")[0] for line in lines] == ["step 3", "step 6", "step 9"]
    assert all("\x1b" not in line and "left" in line for line in lines)


def test_tokens_a_second_count_training_alone_over_all_epochs(clock):
    watcher = bar(clock)
    batch(watcher, clock, seconds=1.0)
    clock.now += 500  # validation
    watcher.on_epoch_begin(1)
    batch(watcher, clock, seconds=3.0, logs={**LOGS, "labels": 400.0})
    assert "600 target tokens/s" in watcher.line(LOGS)


def test_time_left_is_the_nearer_of_steps_and_minutes(clock):
    assert "1:30 left" in line_after_a_second(bar(clock, last_step=91), clock)
    assert "1:00:00 left" in line_after_a_second(bar(clock, last_step=3601), clock)
    assert "0:59 left" in line_after_a_second(bar(clock, last_step=3601, minutes=1.0), clock)


def line_after_a_second(watcher, clock):
    batch(watcher, clock, seconds=1.0)
    return watcher.line(LOGS)


def test_a_resumed_run_counts_its_own_speed(clock):
    watcher = bar(clock, last_step=110, iterations=100)
    batch(watcher, clock, seconds=2.0)
    assert watcher.line(LOGS).startswith("step 101 ")
    assert watcher.line(LOGS).endswith(" 0:18 left")


def test_the_share_done_is_that_of_the_nearer_limit(clock):
    watcher = bar(clock, last_step=10, minutes=1.0)
    batch(watcher, clock, seconds=30.0)
    assert watcher.share_done() == 0.5
    for _ in range(9):
        batch(watcher, clock, seconds=30.0)
    assert watcher.share_done() == 1.0


@pytest.mark.parametrize("terminal", [True, False])
def test_a_report_is_printed_as_it_is(clock, terminal):
    watcher = bar(clock, terminal=terminal, width=40)
    line = "epoch 1  [bold] val_bleu 31.5  " + "x" * 60
    watcher.report(line)
    watcher.on_train_end()
    assert line in written(watcher)


def test_a_run_that_goes_on_inside_an_epoch_has_one_bar(clock):
    watcher = bar(clock, terminal=True)
    batch(watcher, clock, seconds=1.0)
    watcher.on_train_end()
    watcher.on_train_begin()
    batch(watcher, clock, seconds=1.0)
    watcher.on_train_end()
    assert len(watcher.bar.tasks) == 1
