"""Trainings on a core each; nothing is trained here."""

import pathlib
import signal
import subprocess
import sys
import time

import pytest

from benchmarks.paper import side_by_side

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
