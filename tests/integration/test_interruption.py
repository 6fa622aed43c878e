"""A run that is killed goes on, and ends where the uninterrupted run ends."""

import json
import shutil
import signal

import numpy as np
import pytest
from shell import read_until

from keras_transformer.training import checkpoint

pytestmark = pytest.mark.slow
RUN = "runs/reverse_words_reversed"


LONGEST_SECONDS = 120


def test_a_killed_run_goes_on_and_equals_the_uninterrupted_one_bit_for_bit(uninterrupted, goes_on):
    goes_on(uninterrupted.training, uninterrupted, RUN)


def test_a_damaged_newest_checkpoint_is_told_and_the_one_before_is_taken(
    uninterrupted, fresh_shell
):
    shutil.copytree(uninterrupted.folder / RUN, fresh_shell.folder / RUN)
    newest = checkpoint.checkpoints(fresh_shell.folder / RUN / "checkpoints")[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    resumed = fresh_shell(*uninterrupted.training)
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert f"{newest.name} is damaged".encode() in resumed.stdout


def newest(shell):
    return checkpoint.read_archive(checkpoint.checkpoints(shell.folder / RUN / "checkpoints")[-1])


def equal(here, there):
    return all(np.array_equal(here[name], there[name]) for name in there if name != "progress")


# A run whose machine is about to be taken away saves itself, and goes on elsewhere as if nothing
# had been.
def test_on_sigterm_a_run_saves_and_ends_and_the_same_command_goes_on_bit_for_bit(
    uninterrupted, fresh_shell
):
    process = fresh_shell.start(*uninterrupted.training)
    read_until(process, b"epoch 1 ")
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=LONGEST_SECONDS)
    assert (process.returncode, stderr) == (0, b"")
    preempted = newest(fresh_shell)
    step = json.loads(str(preempted["progress"]))["step"]
    assert [line for line in stdout.decode().splitlines() if "SIGTERM" in line] == [
        f"SIGTERM: step {step} is saved; the same command resumes."
    ]
    assert not (fresh_shell.folder / RUN / "averaged.npz").exists()

    resumed = fresh_shell(*uninterrupted.training)
    assert resumed.returncode == 0, resumed.stderr.decode()
    assert f"going on from step {step} ".encode() in resumed.stdout
    assert equal(newest(fresh_shell), newest(uninterrupted))
    assert not equal(preempted, newest(uninterrupted))
    assert (fresh_shell.folder / RUN / "averaged.npz").exists()
