"""One toy run, trained for real by the command that users type, shared by all tests of this folder."""

import pathlib
import subprocess
import sys

import pytest

TRAIN = ["train", "--flagfile=toy.flags", "--seed=3"]


class Shell:
    """Runs the project's commands in a folder of their own."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def command(self, name, *flags):
        return [sys.executable, "-m", f"keras_transformer.{name}", *flags]

    def __call__(self, name, *flags, stdin=b""):
        return subprocess.run(self.command(name, *flags), cwd=self.folder, input=stdin, capture_output=True, check=False)


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """A `Shell` in the folder of a finished toy run; `toy.trained` is what the training command gave."""
    shell = Shell(tmp_path_factory.mktemp("toy"))
    shell.trained = shell(*TRAIN)
    assert shell.trained.returncode == 0, shell.trained.stderr.decode()
    return shell


@pytest.fixture
def fresh_shell(tmp_path):
    """A `Shell` in an empty folder."""
    return Shell(tmp_path)
