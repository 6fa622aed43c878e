"""A run that is killed goes on, and ends where the uninterrupted run ends."""

import signal
import subprocess

import numpy as np

from keras_transformer.training import checkpoint

RUN = "runs/reverse_words_reversed"
TRAIN = ("train", "--flagfile=toy.flags", "--max_epochs=3", "--keep_checkpoints=5", "--validation_sentences=0")


def train_and_kill(shell, *flags, after):
    """Start training, and kill it with SIGKILL once a line with `after` has been printed."""
    process = subprocess.Popen(shell.command(*TRAIN, *flags), cwd=shell.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stdout:
        if after in line:
            process.send_signal(signal.SIGKILL)
            break
    process.stdout.close()
    process.stderr.close()
    assert process.wait() == -signal.SIGKILL


def final_weights(shell):
    return checkpoint.read_whole(checkpoint.checkpoints(shell.folder / RUN / "checkpoints")[-1])


def test_a_killed_run_goes_on_and_equals_the_uninterrupted_one_bit_for_bit(tmp_path, fresh_shell):
    dropout = "--dropout=0.1"
    train_and_kill(fresh_shell, dropout, "--checkpoint_minutes=0", after=b"epoch 1 ")
    killed = final_weights(fresh_shell)
    resumed = fresh_shell(*TRAIN, dropout)
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert b"going on from step" in resumed.stdout

    uninterrupted = type(fresh_shell)(tmp_path / "whole")
    uninterrupted.folder.mkdir()
    assert uninterrupted(*TRAIN, dropout).returncode == 0
    here, there = final_weights(fresh_shell), final_weights(uninterrupted)
    weights = [name for name in here if name != "progress"]
    assert all(np.array_equal(here[name], there[name]) for name in weights)
    assert not all(np.array_equal(killed[name], there[name]) for name in weights)
    assert not list(fresh_shell.folder.rglob("*.tmp"))


def test_a_damaged_newest_checkpoint_is_told_and_the_one_before_is_taken(fresh_shell):
    train_and_kill(fresh_shell, "--checkpoint_minutes=0", after=b"epoch 1 ")
    newest = checkpoint.checkpoints(fresh_shell.folder / RUN / "checkpoints")[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    resumed = fresh_shell(*TRAIN)
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert f"{newest.name} is damaged".encode() in resumed.stdout
