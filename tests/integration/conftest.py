"""Runs that the tests of this folder share, trained by the command that users type."""

import fcntl
import os
import pickle
import select
import signal
import subprocess

import numpy as np
import pytest
from shell import Shell, read_until

from keras_transformer.inference.translator import Translator
from keras_transformer.training import checkpoint

TRAIN = ["train", "--flagfile=toy.flags", "--mixed_precision=float32", "--seed=3"]
TRAIN += ["--max_epochs=15"]


def train_once(name, command, tmp_path_factory, warm, shared):
    """A `Shell` in the folder of a finished training, which no test may change;
    `shell.training` is the command, and `shell.trained` its completed process.

    The first of several pytest processes trains, and each gets a copy.
    """
    base = tmp_path_factory.getbasetemp()
    first = Shell((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name, warm)
    answer = first.folder.with_suffix(".answer")
    with open(first.folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not answer.exists():
            first.folder.mkdir()
            answer.write_bytes(pickle.dumps(first(*command)))
    shell = first.copy(tmp_path_factory.mktemp(name))
    shell.training = command
    shell.trained = pickle.loads(answer.read_bytes())
    assert shell.trained.returncode == 0, shell.trained.stderr.decode()
    shared.add(shell.folder)
    return shell


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory, warm, shared):
    """A function from a name and a command to a `Shell`: see `train_once`."""
    return lambda name, command: train_once(name, command, tmp_path_factory, warm, shared)


@pytest.fixture(scope="session")
def toy(tmp_path_factory, warm, shared):
    """A `Shell` in the folder of a finished toy run."""
    return train_once("trained_toy", TRAIN, tmp_path_factory, warm, shared)


@pytest.fixture
def toy_copy(toy, tmp_path):
    """A copy of `toy` that the test may change."""
    return toy.copy(tmp_path / "toy")


@pytest.fixture(scope="session")
def live(toy):
    """The `Translator` of the toy run."""
    return Translator.load(toy.folder / "runs" / "reverse_words_reversed")


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory, warm, shared):
    """A `Shell` in the folder of an uninterrupted run: three epochs, with dropout."""
    training = [*TRAIN[:-1], "--max_epochs=3", "--dropout=0.1", "--keep_checkpoints=5"]
    training += ["--validation_sentences=0", "--norelease"]
    return train_once("uninterrupted", training, tmp_path_factory, warm, shared)


def newest_weights(shell, run):
    """The arrays of the last checkpoint of a run in the folder of a `Shell`."""
    return checkpoint.read_archive(checkpoint.checkpoints(shell.folder / run / "checkpoints")[-1])


def are_equal(here, there):
    return all(np.array_equal(here[name], there[name]) for name in there if name != "progress")


def answers_one_by_one(shell, lines, *command):
    """The answers of a command to lines of which each is sent when the one before is answered."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    answers = []
    with subprocess.Popen(shell.command(*command), cwd=shell.folder, bufsize=0, **pipes) as process:
        try:
            for line in lines:
                process.stdin.write(f"{line}\n".encode())
                assert select.select([process.stdout], [], [], 120)[0], "no answer"
                answers.append(process.stdout.readline().decode())
            rest = process.communicate()
        finally:
            process.kill()
    assert (process.returncode, *rest) == (0, b"", b"")
    return answers


@pytest.fixture
def kill_and_resume(fresh_shell):
    """A function of a command, the `Shell` in which it ran without interruption, and the run: kill
    the command, run it again, and check that the weights are equal bit for bit.
    """

    def kill_and_resume(command, uninterrupted, run):
        process = fresh_shell.start(*command, "--checkpoint_minutes=0")
        read_until(process, b"epoch 1 ")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        there = newest_weights(uninterrupted, run)
        assert not are_equal(newest_weights(fresh_shell, run), there)
        resumed = fresh_shell.run(*command)
        assert b"going on from step" in resumed.stdout
        assert are_equal(newest_weights(fresh_shell, run), there)
        assert not list(fresh_shell.folder.rglob("*.tmp"))

    return kill_and_resume
