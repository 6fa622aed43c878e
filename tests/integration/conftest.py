"""Runs that tests of this folder share, trained for real by the command that users type."""

import fcntl
import os
import pickle

import pytest
from shell import Shell

from keras_transformer.inference.translator import Translator

TRAIN = ["train", "--flagfile=toy.flags", "--mixed_precision=float32", "--seed=3"]
TRAIN += ["--max_epochs=15"]


def train_once(name, command, tmp_path_factory, warm, shared):
    """A `Shell` in the folder of a finished training that tests read, and none changes;
    `shell.training` is the command, and `shell.trained` what it gave.

    The first of several pytest processes trains, and each gets a copy.
    """
    base = tmp_path_factory.getbasetemp()
    first = Shell((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name, warm)
    answer = first.folder.with_suffix(".answer")
    with open(first.folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not answer.exists():
            first.folder.mkdir()
            answer.write_bytes(pickle.dumps(first.process(*command)))
    shell = first.copy(tmp_path_factory.mktemp(name))
    shell.training = command
    shell.trained = pickle.loads(answer.read_bytes())
    assert shell.trained.returncode == 0, shell.trained.stderr.decode()
    shared.add(shell.folder)
    return shell


@pytest.fixture(scope="session")
def trained_once(tmp_path_factory, warm, shared):
    """A function of a name and a command: see `train_once`."""
    return lambda name, command: train_once(name, command, tmp_path_factory, warm, shared)


@pytest.fixture(scope="session")
def toy(tmp_path_factory, warm, shared):
    """A `Shell` in the folder of a finished toy run."""
    return train_once("trained_toy", TRAIN, tmp_path_factory, warm, shared)


@pytest.fixture
def toy_copy(toy, tmp_path):
    """The same in a folder of the test's own."""
    return toy.copy(tmp_path / "toy")


@pytest.fixture(scope="session")
def live(toy):
    """The `Translator` of the toy run."""
    return Translator.load(toy.folder / "runs" / "reverse_words_reversed")


@pytest.fixture(scope="session")
def uninterrupted(tmp_path_factory, warm, shared):
    """A `Shell` in the folder of three epochs with dropout that nothing interrupted."""
    training = [
        *TRAIN[:-1],
        "--max_epochs=3",
        "--dropout=0.1",
        "--keep_checkpoints=5",
        "--validation_sentences=0",
        "--norelease",
    ]
    return train_once("uninterrupted", training, tmp_path_factory, warm, shared)
