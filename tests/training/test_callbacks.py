"""The callbacks of a run: divergence, limits, preemption, checkpoints, validation."""

import contextlib
import errno
import json
import math
import os
import signal
import types

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.runs.folder import RunFolder
from keras_transformer.training import checkpoint
from keras_transformer.training import ending as endings
from keras_transformer.training.checkpointing import Checkpointing, Window
from keras_transformer.training.ending import (
    Ending,
    Preempted,
    StopAtLimit,
    StopOnDivergence,
    StopOnSignal,
    Stopwatch,
)
from keras_transformer.training.validation import Validation
from keras_transformer.training.watchers import Watchers
from pipelines.whole_files import write_whole


@pytest.fixture
def model():
    """A model of two weights."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, name="dense")])
    model.compile(optimizer=keras.optimizers.SGD(0.001), loss="mse", run_eagerly=True)
    return model


@pytest.fixture
def stopwatch():
    """A stopwatch that is set by hand."""
    return types.SimpleNamespace(seconds=0.0)


def fit(model, *watchers, epochs=2, steps=3):
    data = np.arange(steps, dtype=np.float32)[:, None]
    return model.fit(
        data, data, batch_size=1, epochs=epochs, callbacks=list(watchers), shuffle=False, verbose=0
    )


def steps_in(folder):
    return [checkpoint.step_in(path) for path in checkpoint.checkpoints(folder)]


def averaged_in(folder):
    return [checkpoint.step_in(path) for path in checkpoint.checkpoints_to_average(folder)]


def test_a_stopwatch_goes_on_from_the_sessions_before(monkeypatch):
    clock = types.SimpleNamespace(monotonic=lambda: clock.now, now=1000.0)
    monkeypatch.setattr(endings, "time", clock)
    stopwatch = Stopwatch(seconds=60.0)
    clock.now += 5
    assert stopwatch.seconds == 65.0


def test_divergence_stops_with_advice_before_anything_is_saved(model, stopwatch, tmp_path):
    model.layers[-1].bias.assign([np.inf])
    message = r"^The loss became (inf|nan) at step 1: training diverged\. Lower --learning_rate or "
    with pytest.raises(ValueError, match=message):
        fit(model, StopOnDivergence(), Checkpointing(tmp_path, stopwatch, keep=2, minutes=0))
    assert steps_in(tmp_path) == []


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_divergence(model, loss):
    watcher = StopOnDivergence()
    watcher.set_model(model)
    watcher.on_train_batch_end(0, {"loss": 3.5})
    with pytest.raises(ValueError, match=rf"The loss became {loss} at step 0"):
        watcher.on_train_batch_end(1, {"loss": loss})


def test_training_stops_when_the_minutes_are_over(model, stopwatch):
    limit = StopAtLimit(Ending(model), stopwatch, minutes=2.5, last_step=math.inf)
    fit(model, minutes_that_pass(stopwatch, 0.5), limit, epochs=9)
    assert int(model.optimizer.iterations) == 5
    stopwatch.seconds = 149.9
    assert not limit.is_out_of_time


def test_each_epoch_is_saved_and_the_last_k_are_kept(model, stopwatch, tmp_path):
    saving = Checkpointing(tmp_path, stopwatch, 2, minutes=10, average_over="epochs")
    fit(model, saving, epochs=4)
    assert names(tmp_path) == ["step-000000009.npz", "step-000000012.npz"]


def minutes_that_pass(stopwatch, minutes):
    """A callback that moves the stopwatch before each step."""

    def pass_(batch, logs):
        stopwatch.seconds += 60 * minutes

    return keras.callbacks.LambdaCallback(on_train_batch_begin=pass_)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_timed_checkpoints_are_averaged_and_those_of_epochs_are_not(model, stopwatch, tmp_path):
    """Section 6.1: at 10-minute intervals of the whole run. Saves at the ends of epochs, steps 5
    and 10, serve to resume from and shift none of them.
    """
    saving = Checkpointing(tmp_path, stopwatch, keep=99, minutes=2)
    fit(model, minutes_that_pass(stopwatch, 1), saving, epochs=3, steps=5)
    assert averaged_in(tmp_path) == [2, 4, 6, 8, 10, 12, 14]
    assert names(tmp_path)[0] == "last-000000015.npz"
    assert len(names(tmp_path)) == 8


def test_a_new_session_keeps_the_clock_s_intervals(model, stopwatch, tmp_path):
    stopwatch.seconds = 3.5 * 60
    saving = Checkpointing(tmp_path, stopwatch, keep=99, minutes=2)
    fit(model, minutes_that_pass(stopwatch, 0.75), saving, epochs=1, steps=7)
    # Minutes 4.25, 5, 5.75, 6.5, 7.25, 8, 8.75: the first past 4, 6 and 8.
    assert averaged_in(tmp_path) == [1, 4, 6]


def test_when_epochs_are_averaged_timed_checkpoints_only_resume(model, stopwatch, tmp_path):
    saving = Checkpointing(tmp_path, stopwatch, 99, minutes=2, average_over="epochs")
    listings = []
    listing = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: listings.append(names(tmp_path))
    )
    fit(model, minutes_that_pass(stopwatch, 1), listing, saving, epochs=2, steps=5)
    assert averaged_in(tmp_path) == [5, 10]
    assert names(tmp_path) == ["last-000000008.npz", "step-000000005.npz", "step-000000010.npz"]
    assert listings[4] == ["last-000000002.npz", "last-000000004.npz"]
    assert listings[7] == ["last-000000006.npz", "step-000000005.npz"]


def test_two_checkpoints_are_kept_before_the_first_timed_one(model, stopwatch, tmp_path):
    """If the newest is damaged, the run goes on from the one before."""
    fit(model, Checkpointing(tmp_path, stopwatch, keep=1, minutes=10), epochs=3)
    assert names(tmp_path) == ["last-000000006.npz", "last-000000009.npz"]
    (tmp_path / "last-000000009.npz").write_bytes(b"damaged")
    newest = checkpoint.read_newest(tmp_path, log=lambda line: None)[0]
    assert newest.name == "last-000000006.npz"


def test_a_checkpoint_holds_its_step_and_the_seconds_of_the_run(model, stopwatch, tmp_path):
    stopwatch.seconds = 12.5
    fit(model, Checkpointing(tmp_path, stopwatch, keep=1, minutes=10), epochs=1)
    path, _ = checkpoint.read_newest(tmp_path)
    assert checkpoint.restore(path, model) == {"step": 3, "seconds": 12.5}


def test_what_a_killed_run_left_half_written_is_removed(model, stopwatch, tmp_path):
    folder = tmp_path / "checkpoints"
    checkpoint.write_archive(checkpoint.path_of(folder, 0), {})

    def die(temporary):
        left.append(temporary.with_name(temporary.name.replace("killed", "left")))
        left[-1].write_bytes(b"half of it")
        raise KeyboardInterrupt

    left = []
    for path in (checkpoint.path_of(folder, 3), tmp_path / "best.npz"):
        with pytest.raises(KeyboardInterrupt):
            write_whole(path.with_name(f"killed{path.name}"), die)
    assert all(path.exists() for path in left)
    fit(model, Checkpointing(folder, stopwatch, keep=9, minutes=10), epochs=0)
    assert [path.name for path in tmp_path.rglob("*.*")] == ["step-000000000.npz"]


def test_weights_that_are_not_finite_end_the_run_before_they_are_saved(model, stopwatch, tmp_path):
    """An update may break the weights while the loss before it is still a number."""
    breaking = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: batch == 1 and model.layers[-1].bias.assign([np.nan])
    )
    saving = Checkpointing(tmp_path, stopwatch, keep=9, minutes=0)
    words = r"^weights/.*dense/bias became NaN or infinite at step 2: training diverged"
    with pytest.raises(ValueError, match=words):
        fit(model, breaking, saving, epochs=1)
    assert steps_in(tmp_path) == [1]


@pytest.mark.parametrize(
    ("average_over", "step", "name"),
    [
        ("epochs", 6, "step-000000006.npz"),
        ("epochs", 5, "last-000000005.npz"),
        ("minutes", 6, "last-000000006.npz"),
    ],
)
def test_an_epoch_that_the_clock_saved_is_averaged(stopwatch, tmp_path, average_over, step, name):
    """A kill between the clock's save of an epoch's last step and the save of the epoch."""
    saving = Checkpointing(tmp_path, stopwatch, 9, 10, average_over)
    saving.keep_epoch(step, 3)
    assert names(tmp_path) == []
    checkpoint.path_of(tmp_path, step, averaged=False).write_bytes(b"whole")
    saving.keep_epoch(step, 3)
    saving.keep_epoch(0, 3)
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"whole"


def test_a_checkpoint_that_could_not_be_read_is_set_aside(model, stopwatch, tmp_path):
    fit(model, Checkpointing(tmp_path, stopwatch, keep=9, minutes=0), epochs=1)
    checkpoint.restore(checkpoint.path_of(tmp_path, 2), model)
    fit(model, Checkpointing(tmp_path, stopwatch, keep=9, minutes=10), epochs=0)
    expected = ["step-000000001.npz", "step-000000002.npz", "step-000000003.npz.damaged"]
    assert names(tmp_path) == expected


def test_an_epoch_that_is_cut_short_is_not_averaged(model, stopwatch, tmp_path):
    saving = Checkpointing(tmp_path, stopwatch, 99, minutes=10, average_over="epochs")
    fit(model, saving, StopAtLimit(Ending(model), stopwatch, math.inf, 5), epochs=9)
    assert names(tmp_path) == ["last-000000005.npz", "step-000000003.npz"]


def test_a_full_disk_costs_one_save(model, stopwatch, tmp_path, monkeypatch):
    sync, reports = os.fsync, []

    def sync_or_fail(descriptor):
        if checkpoint.step_of(model) == 6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync_or_fail)
    saving = Checkpointing(tmp_path, stopwatch, keep=1, minutes=10, report=reports.append)
    states = []
    in_between = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda epoch, logs: states.append((names(tmp_path), saving.saved_step))
    )
    fit(model, saving, in_between, epochs=4)
    [line] = reports
    assert line.startswith("step 6 could not be saved: [Errno ")
    assert line.endswith("Training continues; the checkpoints before it stay. Make room.")
    old, new = "last-000000003.npz", "last-000000009.npz"
    assert states == [([], None), ([old], 3), ([old], 3), ([old, new], 9)]
    assert names(tmp_path) == ["last-000000009.npz", "last-000000012.npz"]


def test_control_an_error_that_is_not_the_disk_s_is_raised(model, stopwatch, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "write_archive", lambda path, arrays: {}["nothing"])
    with pytest.raises(KeyError):
        fit(model, Checkpointing(tmp_path, stopwatch, keep=1, minutes=10))


# Runs that are limited by minutes: the checkpoints of a share of the end are averaged.
def train_to_a_limit(model, stopwatch, saving, minutes, last_step=10**6):
    """Train steps of a second up to a limit, and end as `TrainingRun` does."""
    limit = StopAtLimit(Ending(model), stopwatch, minutes, last_step)
    fit(model, minutes_that_pass(stopwatch, 1 / 60), limit, saving, epochs=99, steps=33)
    saving.require_saved(model)
    saving.keep_end(checkpoint.step_of(model))


# A run of 40 seconds with a window of its second half: what each of its sessions changes, and the
# steps that are averaged in the end.
SESSIONS = {
    "evenly, the last weights among them": ([{}], [24, 28, 32, 36, 40]),
    "those of the minutes are to resume from": ([{"minutes": 5 / 60}], [24, 28, 32, 36, 40]),
    "an end before the window": ([{"last_step": 10}], [10]),
    "an end in the window": ([{"last_step": 30}], [24, 28, 30]),
    "a limit of steps that comes first": ([{"steps": 20, "last_step": 20}], [12, 14, 16, 18, 20]),
    "more minutes move the window": ([{}, {"seconds": 80}], [48, 56, 64, 72, 80]),
    "a kill within the window": ([{"killed_at": 30}, {}], [24, 28, 32, 36, 40]),
}


def train_a_session(
    model,
    stopwatch,
    folder,
    seconds=40,
    minutes=math.inf,
    steps=math.inf,
    last_step=10**6,
    killed_at=None,
):
    window = Window(seconds, 0.5, 5, steps)
    saving = Checkpointing(folder, stopwatch, 9, minutes, window=window)
    if killed_at:
        # A killed session does nothing at its end.
        saving.keep_end = lambda step: None
    train_to_a_limit(model, stopwatch, saving, seconds / 60, killed_at or last_step)


@pytest.mark.parametrize("name", SESSIONS)
def test_the_checkpoints_of_the_share_of_the_end_are_averaged(model, stopwatch, tmp_path, name):
    sessions, averaged = SESSIONS[name]
    for session in sessions:
        train_a_session(model, stopwatch, tmp_path, **session)
    assert averaged_in(tmp_path) == averaged


@given(st.floats(1e-6, 1), st.integers(1, 30), st.floats(0, 1, exclude_max=True))
def test_the_places_of_a_window_lie_in_it(share, count, share_done):
    window = Window(60, share, count)
    places = []
    while (due := window.next_after(share_done)) < math.inf:
        places.append(due)
        share_done = due
    assert len(places) <= count - 1
    assert all(window.begin <= place < 1 for place in places)
    assert places == sorted(set(places))
    assert window.begin >= 1 - share - 1e-6


def test_the_paper_s_share_gives_the_paper_s_intervals():
    def minutes_between(hours, window):
        return round((1 - window.begin) / (window.count - 1) * hours * 60, 1)

    assert minutes_between(12, Window(12 * 3600, 0.0694, 5)) == 10
    assert minutes_between(84, Window(84 * 3600, 0.0397, 20)) == 10


def test_an_end_that_cannot_be_written_is_tried_once_more(model, stopwatch, tmp_path, monkeypatch):
    reports = []
    saving = Checkpointing(tmp_path, stopwatch, 9, math.inf, report=reports.append)
    write = checkpoint.write_archive

    def full(path, arrays):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(checkpoint, "write_archive", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*last-000000007\.npz'"):
        train_to_a_limit(model, stopwatch, saving, 7 / 60)
    assert len(reports) == 1
    monkeypatch.setattr(checkpoint, "write_archive", write)
    saving.require_saved(model)
    assert steps_in(tmp_path) == [7]


@pytest.fixture
def received():
    """The signals that reach the handler that was there before training."""
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    yield received
    signal.signal(signal.SIGTERM, before)


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("moment", "saved"),
    [
        ("on_train_begin", 1),
        ("on_train_batch_begin", 1),
        ("on_train_batch_end", 1),
        ("on_epoch_begin", 1),
        ("on_epoch_end", 3),
    ],
)
def test_on_sigterm_the_step_ends_and_is_saved(model, stopwatch, tmp_path, received, moment, saved):
    preempted = StopOnSignal(Ending(model))
    measured = []
    validation = Validation(
        lambda model: measured.append(1) or {}, tmp_path / "history.jsonl", lambda line: None
    )
    once = iter([terminate])
    terminating = {moment: lambda *arguments, **logs: next(once, lambda: None)()}
    watchers = [keras.callbacks.LambdaCallback(**terminating), preempted]
    watchers = watchers[::-1] if moment == "on_train_begin" else watchers
    saving = Checkpointing(tmp_path, stopwatch, keep=9, minutes=10)
    with pytest.raises(Preempted):
        fit(model, saving, *watchers, validation)
    assert checkpoint.step_of(model) == saved
    assert steps_in(tmp_path) == [saved]
    assert measured == []
    terminate()
    assert received == [signal.SIGTERM]  # the handler is as it was


def test_on_sigterm_validation_is_not_waited_for(model, stopwatch, tmp_path, received):
    began, ended = [], []

    def measure(model):
        began.append(checkpoint.step_of(model))
        if len(began) == 2:
            terminate()
        ended.append(checkpoint.step_of(model))
        return {}

    history = tmp_path / "history.jsonl"
    validation = Validation(measure, history, lambda line: None)
    saving = Checkpointing(tmp_path, stopwatch, keep=9, minutes=10)
    with pytest.raises(Preempted):
        fit(model, saving, StopOnSignal(Ending(model)), validation, epochs=9)
    assert (began, ended) == ([3, 6], [3])
    assert steps_in(tmp_path) == [3, 6]
    assert len(history.read_text(encoding="utf-8").splitlines()) == 1
    terminate()
    assert received == [signal.SIGTERM]


def test_without_a_signal_training_ends_as_usual(model, received):
    fit(model, StopOnSignal(Ending(model)))
    assert checkpoint.step_of(model) == 6
    terminate()
    assert received == [signal.SIGTERM]


@pytest.mark.parametrize("is_preempted", [False, True])
def test_a_host_ends_when_another_is_preempted(received, is_preempted):
    ending = Ending(types.SimpleNamespace(stop_training=False), several_hosts=True)
    ending.count(float(is_preempted), float(is_preempted))
    watcher = StopOnSignal(ending)
    watcher.on_train_begin()
    with pytest.raises(Preempted) if is_preempted else contextlib.nullcontext():
        watcher.on_epoch_end(0)
    assert (signal.getsignal(signal.SIGTERM) == watcher.ask) is not is_preempted


def test_a_signal_asks_all_hosts_to_end_for_a_preemption(received):
    ending = Ending(types.SimpleNamespace(stop_training=False), several_hosts=True)
    watcher = StopOnSignal(ending, at_once=False)
    watcher.on_train_begin()
    terminate()
    watcher.on_train_end()
    assert (watcher.is_asked, ending.votes) == (True, [1.0, 1.0])


def test_validation_appends_a_json_line_an_epoch_and_reports_it(model, tmp_path):
    path, reports = tmp_path / "history.jsonl", []
    path.write_text('{"epoch": 0}\n', encoding="utf-8")
    measure = lambda measured: {"bleu": 31.5, "same": float(measured is model)}  # noqa: E731
    history = fit(model, Validation(measure, path, reports.append))
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1, 2]
    assert [line["step"] for line in lines[1:]] == [3, 6]
    assert all((line["val_bleu"], line["val_same"]) == (31.5, 1.0) for line in lines[1:])
    assert [line["loss"] for line in lines[1:]] == pytest.approx(history.history["loss"])
    begins = [line.split("  ")[:2] for line in reports]
    assert begins == [["epoch 1", "step 3"], ["epoch 2", "step 6"]]
    assert all("val_bleu 31.5" in line for line in reports)


def test_the_count_of_labels_is_not_a_result(model, tmp_path):
    watcher = Validation(lambda model: {}, tmp_path / "history.jsonl", lambda line: None)
    watcher.set_model(model)
    watcher.on_epoch_end(0, {"loss": 1.0, "labels": 123.0})
    [line] = (tmp_path / "history.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line) == {"epoch": 1, "step": 0, "loss": 1.0}


def test_several_hosts_stop_when_the_votes_are_counted_and_one_alone_at_once():
    model = types.SimpleNamespace(stop_training=False)
    ending = Ending(model, several_hosts=True)
    assert ending.votes == [0.0, 0.0]
    ending.ask()
    assert (ending.votes, model.stop_training) == ([1.0, 0.0], False)
    ending.ask(preempted=True)
    assert (ending.votes, model.stop_training) == ([1.0, 1.0], False)
    ending.count(0.0, 0.0)
    assert (model.stop_training, ending.is_preempted) == (False, False)
    ending.count(1.0, 0.0)
    assert (model.stop_training, ending.is_preempted) == (True, False)
    ending.count(2.0, 1.0)
    assert (model.stop_training, ending.is_preempted) == (True, True)
    for preempted in (False, True):
        model.stop_training = False
        alone = Ending(model, several_hosts=False)
        alone.ask(preempted)
        assert (alone.votes, model.stop_training) == ([1.0, float(preempted)], True)


@pytest.mark.parametrize("is_chief", [True, False])
def test_the_callbacks_stand_in_an_order_that_never_saves_divergence(tmp_path, is_chief):
    """Saves come after divergence and limits, the signal after saves, validation after the signal,
    the best weights after validation, and the callbacks of Keras last.
    """
    values = {"max_minutes": None, "keep_best": "bleu", "patience": None, "keep_checkpoints": 1}
    values |= {"checkpoint_minutes": 9, "average_over": "epochs"}
    task = types.SimpleNamespace(labels="words", higher_is_better={"bleu": True}, monitor="bleu")
    model = types.SimpleNamespace()
    watchers = Watchers(
        *(task, values, RunFolder(tmp_path), is_chief, Ending(model), 1, Stopwatch(), 9),
        lambda model: {},
    )
    # The checkpoint of a run stopped in the middle of an epoch is not measured.
    watchers.catch_up(model, steps_per_epoch=2)
    assert not watchers.folder.history.exists()
    names = [type(callback).__name__ for callback in watchers.callbacks]
    of_others = ["StopOnDivergence", "StopAtLimit", "StopOnSignal"]
    of_chief = [*of_others[:2], "Checkpointing", of_others[2], "Validation", "ProgressBar"]
    assert names == ([*of_chief, "BestSoFar", "Board"] if is_chief else of_others)
