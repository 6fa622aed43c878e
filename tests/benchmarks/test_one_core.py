"""A training on one core, by its clock; nothing is trained here."""

import os
import sys
import types

import pytest

from benchmarks.paper import one_core
from keras_transformer.runs import run as runs


@pytest.fixture
def processor(monkeypatch):
    """A clock of processor seconds that stands still."""
    clock = types.SimpleNamespace(process_time=lambda: clock.now, now=30.0)
    monkeypatch.setattr(one_core, "time", clock)
    return clock


def test_one_and_a_half_processor_seconds_are_a_second(processor):
    stopwatch = one_core.processor_stopwatch(1.5)(seconds=60.0)
    assert stopwatch.seconds == 60
    processor.now += 90
    assert stopwatch.seconds == 120


@pytest.fixture
def started(processor, monkeypatch):
    """What the command does to this process, undone; and what it lets run."""
    cores = []
    ran = []
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(runs, "Stopwatch", runs.Stopwatch)
    # It sets variables of the environment.
    monkeypatch.setattr(one_core, "start_tensorflow", lambda: None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda process, chosen: cores.append(chosen))
    run_module = lambda module, **_: ran.append((module, sys.argv[1:]))  # noqa: E731
    monkeypatch.setattr(one_core.runpy, "run_module", run_module)
    return cores, ran


def command(*arguments):
    sys.argv = ["one_core", *arguments]
    one_core.main()


def test_a_run_is_trained_on_one_core_by_this_clock(started, processor, tmp_path):
    cores, ran = started
    command("--cores_worth=2", "--", "--seed=2", "--max_minutes=1")
    assert cores == [{2}]
    assert ran == [("keras_transformer.train", ["--seed=2", "--max_minutes=1"])]
    stopwatch = runs.Stopwatch()
    processor.now += 8
    assert stopwatch.seconds == 4


def test_a_report_is_refused(started):
    with pytest.raises(SystemExit, match="--report estimates the cost by the wall's clock"):
        command("--", "--report")
    assert started == ([], [])


def test_two_seeds_run_side_by_side(started):
    command("--core=5", "--", "--seed=2")
    assert started[0] == [{5}]
    with pytest.raises(SystemExit, match=r"--core must be one of \[2, 5\]. Received: 0"):
        command("--core=0", "--", "--seed=2")


def test_the_flags_of_the_training_stand_behind_two_dashes(started, capsys):
    with pytest.raises(SystemExit):
        command("--core=2")
    assert "the flags of the training are missing" in capsys.readouterr().err
    assert started == ([], [])
