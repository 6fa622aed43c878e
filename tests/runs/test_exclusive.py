"""A run's folder is held by one process, and is free when that process is gone."""

import errno
import fcntl
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from keras_transformer.runs.folder import exclusive

ROOT = pathlib.Path(__file__).parents[2]
HOLD = """
import pathlib, sys, time
from keras_transformer.runs.folder import exclusive
with exclusive(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def hold(folder):
    with exclusive(folder):
        pass


def test_a_folder_is_made_and_held_once_at_a_time(tmp_path):
    folder = tmp_path / "runs" / "new"
    with (
        exclusive(folder),
        pytest.raises(ValueError, match=rf"^another process trains in {folder}\. .*--model_dir\.$"),
    ):
        hold(folder)
    hold(folder)
    assert list(folder.iterdir()) == []


def test_what_lies_in_a_folder_and_when_it_changed_stay(tmp_path):
    before = tmp_path.stat().st_mtime_ns
    hold(tmp_path)
    assert tmp_path.stat().st_mtime_ns == before
    assert list(tmp_path.iterdir()) == []


def fail_in(folder, *files):
    def write_and_fail():
        for file in files:
            (folder / file).touch()
        raise KeyError

    with pytest.raises(KeyError), exclusive(folder):
        write_and_fail()


def test_a_new_folder_goes_if_nothing_was_written_before_an_error(tmp_path):
    folder = tmp_path / "new"
    fail_in(folder)
    assert not folder.exists()
    # Controls: with a file in it, or made before, it stays.
    fail_in(folder, "model.json")
    assert [path.name for path in folder.iterdir()] == ["model.json"]
    fail_in(tmp_path)
    (tmp_path / "empty").mkdir()
    fail_in(tmp_path / "empty")
    assert (tmp_path / "empty").is_dir()


def test_a_killed_process_holds_nothing(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(ValueError, match="another process trains"):
        hold(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    hold(tmp_path)


def test_a_file_system_without_locks_is_no_obstacle(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with exclusive(tmp_path):
        hold(tmp_path)
