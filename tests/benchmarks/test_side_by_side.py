"""Trainings on a core each; nothing is trained here."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import types

import pytest

from benchmarks.paper import one_core, side_by_side
from keras_transformer.runs import run as runs

ROOT = pathlib.Path(__file__).parents[2]
TABLE = """
import pathlib, sys
from benchmarks.paper.side_by_side import run_alone
run_alone(pathlib.Path(sys.argv[1]), ["timeit", "-n1", "import time; time.sleep(60)"], None)
"""


def test_each_job_has_a_core_of_its_own():
    def work(core, number):
        assert core not in busy
        busy.add(core)
        time.sleep(0.01)
        busy.remove(core)
        return number**2

    busy = set()
    jobs = [(number,) for number in range(7)]
    assert side_by_side.side_by_side(work, jobs) == [0, 1, 4, 9, 16, 25, 36]


def test_a_program_that_fails_is_told_with_its_log(tmp_path):
    with pytest.raises(SystemExit, match=r"^timeit failed for .*run: see the end of .*run\.log\.$"):
        side_by_side.run_alone(tmp_path / "run", ["timeit", "no python"], None)
    assert "SyntaxError" in (tmp_path / "run.log").read_text()


def test_a_training_that_was_stopped_is_not_taken_for_one_that_is_done(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(
        side_by_side, "run_alone", lambda folder, command, core: commands.append(command)
    )
    with pytest.raises(SystemExit, match="not trained to its end: it was stopped"):
        side_by_side.train_alone(tmp_path, ["--seed=2"], 0)
    assert commands == [["keras_transformer.train", "--seed=2", f"--model_dir={tmp_path}"]]
    (tmp_path / "averaged.npz").touch()
    side_by_side.train_alone(tmp_path, ["--seed=2"], 0)


def test_a_training_ends_with_its_table(tmp_path):
    table = subprocess.Popen([sys.executable, "-c", TABLE, str(tmp_path / "run")], cwd=ROOT)
    children = pathlib.Path(f"/proc/{table.pid}/task/{table.pid}/children")
    until(lambda: children.read_text())
    training = int(children.read_text())
    # Before it is another program, it is not told of its parent's end.
    until(lambda: b"\0-m\0timeit" in pathlib.Path(f"/proc/{training}/cmdline").read_bytes())
    table.send_signal(signal.SIGKILL)
    table.wait()
    until(lambda: not is_running(training))


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(pid):
    try:
        return "State:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


# The clock of trainings on one core; nothing is trained.
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
