"""A run that is killed goes on, and ends where the uninterrupted run ends."""

import signal

import numpy as np
import pytest
from shell import read_until

from keras_transformer.training import checkpoint

pytestmark = pytest.mark.slow
RUN = "runs/reverse_words_reversed"


def train_and_kill(shell, *training, after):
    """Start training, and kill it with SIGKILL once a line with `after` has been printed."""
    process = shell.start(*training)
    read_until(process, after)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def final_weights(shell):
    return checkpoint.read_archive(checkpoint.checkpoints(shell.folder / RUN / "checkpoints")[-1])


def test_a_killed_run_goes_on_and_equals_the_uninterrupted_one_bit_for_bit(
    uninterrupted, fresh_shell
):
    train_and_kill(
        fresh_shell, *uninterrupted.training, "--checkpoint_minutes=0", after=b"epoch 1 "
    )
    killed = final_weights(fresh_shell)
    resumed = fresh_shell(*uninterrupted.training)
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert b"going on from step" in resumed.stdout

    here, there = final_weights(fresh_shell), final_weights(uninterrupted)
    weights = [name for name in here if name != "progress"]
    assert all(np.array_equal(here[name], there[name]) for name in weights)
    assert not all(np.array_equal(killed[name], there[name]) for name in weights)
    assert not list(fresh_shell.folder.rglob("*.tmp"))


def test_a_damaged_newest_checkpoint_is_told_and_the_one_before_is_taken(
    uninterrupted, fresh_shell
):
    train_and_kill(
        fresh_shell, *uninterrupted.training, "--checkpoint_minutes=0", after=b"epoch 1 "
    )
    newest = checkpoint.checkpoints(fresh_shell.folder / RUN / "checkpoints")[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    resumed = fresh_shell(*uninterrupted.training)
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert f"{newest.name} is damaged".encode() in resumed.stdout
