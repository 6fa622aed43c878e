"""Runs that tests of this folder share, trained for real by the command that users type."""

import fcntl
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import pytest

from keras_transformer.translator.translator import Translator

PRELOADED_PROGRAM = pathlib.Path(__file__).with_name("preloaded_program.py")
TRAIN = ["train", "--flagfile=toy.flags", "--seed=3"]


class Shell:
    """Runs the project's commands in a folder of their own."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def command(self, name, *flags):
        return [sys.executable, "-m", f"keras_transformer.{name}", *flags]

    def __call__(self, name, *flags, stdin=b""):
        return subprocess.run(
            self.command(name, *flags),
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            check=False,
        )

    def all(self, commands):
        """What each of several commands gives, lists of a name and flags, some at a time; cheaper
        than a new process for each.
        """
        requests = [
            {
                "module": f"keras_transformer.{name}",
                "arguments": flags,
                "folder": str(self.folder),
                "stdin": "",
            }
            for name, *flags in commands
        ]
        program = subprocess.run(
            [sys.executable, str(PRELOADED_PROGRAM)],
            input="".join(f"{json.dumps(request)}\n" for request in requests).encode(),
            capture_output=True,
            check=False,
        )
        assert program.returncode == 0, program.stderr.decode()
        answers = map(json.loads, program.stdout.splitlines())
        return [
            subprocess.CompletedProcess(
                command,
                answer["status"],
                answer["stdout"].encode("latin-1"),
                answer["stderr"].encode("latin-1"),
            )
            for command, answer in zip(commands, answers, strict=True)
        ]

    def another(self, name):
        """A `Shell` in a folder inside this one's."""
        (self.folder / name).mkdir(exist_ok=True)
        return Shell(self.folder / name)

    def start(self, name, *flags, **environment):
        """A command under way, with variables added to its environment."""
        pipe = subprocess.PIPE
        # Unbuffered, so that `communicate` gives what `read_until` left.
        return subprocess.Popen(
            self.command(name, *flags),
            cwd=self.folder,
            env=os.environ | environment,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
        )

    def read_until(self, process, words):
        """The output of a command up to a line with these words."""
        read = b""
        for line in process.stdout:
            read += line
            if words in line:
                return read
        raise AssertionError((read + process.stderr.read()).decode())


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    """A `Shell` in the folder of a finished toy run; `toy.trained` is what the training command
    gave.
    """
    shell = Shell(tmp_path_factory.mktemp("toy"))
    base = tmp_path_factory.getbasetemp()
    # Trained by the first of several pytest processes; each gets a copy.
    first = Shell((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "trained_toy")
    first.folder.mkdir(exist_ok=True)
    answer = first.folder / "answer.pickle"
    with open(first.folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not answer.exists():
            answer.write_bytes(pickle.dumps(first(*TRAIN)))
    shell.trained = pickle.loads(answer.read_bytes())
    assert shell.trained.returncode == 0, shell.trained.stderr.decode()
    shutil.copytree(
        first.folder, shell.folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(answer.name)
    )
    return shell


@pytest.fixture(scope="module")
def live(toy):
    """The `Translator` of the toy run. Not for longer than a file: others seed TensorFlow, which
    then forgets what tokenizers hold.
    """
    return Translator.load(toy.folder / "runs" / "reverse_words_reversed")


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory):
    """A `Shell` in the folder of three epochs with dropout that nothing interrupted;
    `uninterrupted.training` is its command.
    """
    shell = Shell(tmp_path_factory.mktemp("uninterrupted"))
    shell.training = [
        *TRAIN,
        "--max_epochs=3",
        "--dropout=0.1",
        "--keep_checkpoints=5",
        "--validation_sentences=0",
        "--norelease",
    ]
    trained = shell(*shell.training)
    assert trained.returncode == 0, trained.stderr.decode()
    return shell


@pytest.fixture
def fresh_shell(tmp_path):
    """A `Shell` in an empty folder."""
    return Shell(tmp_path)
