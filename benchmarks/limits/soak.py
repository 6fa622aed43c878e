"""Check that a run that is killed many times ends where an uninterrupted one ends, bit for bit:
`python -m benchmarks.limits.soak` (`make soak`).

The toy recipe is trained with dropout twice from the same seed. One run is left alone. The other
saves at every step and is killed by SIGKILL, every second time while a checkpoint is being written,
otherwise at a random moment; then the same command is started again. The program prints a line for
each kill. It fails if a weight, an optimizer slot or a random state differs, or if a temporary file
is left.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import numpy as np

from keras_transformer.training import checkpoint

RUN = pathlib.Path("run", "checkpoints")
COMMAND = (
    *(sys.executable, "-m", "keras_transformer.train", "--flagfile=toy.flags", "--dropout=0.1"),
    *("--mixed_precision=float32", "--model_dir=run", "--export_dir=saved"),
    *("--validation_sentences=0", "--keep_checkpoints=2", "--average_checkpoints=1"),
)


def train(folder, *flags):
    return subprocess.Popen(
        [*COMMAND, *flags], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finish(process):
    output, _ = process.communicate()
    if process.returncode:
        sys.exit(f"training failed with status {process.returncode}:\n{output}")


def wait_until_it_trains(process):
    for line in process.stdout:
        if "in run" in line:
            return
    sys.exit(f"training ended with status {process.wait()} before it began.")


def newest_step(folder):
    steps = [checkpoint.step_in(path) for path in checkpoint.checkpoints(folder / RUN)]
    return steps[-1] if steps else 0


def kill(process, folder, steps, while_writing, seconds):
    """Kill a run some steps and seconds later, or while the next checkpoint is being written.

    Returns:
        Whether a checkpoint was half written.
    """
    goal = newest_step(folder) + steps
    while newest_step(folder) < goal and process.poll() is None:
        time.sleep(0.002)
    deadline = time.monotonic() + seconds
    while process.poll() is None and (
        not any((folder / RUN).glob(".*.tmp")) if while_writing else time.monotonic() < deadline
    ):
        pass
    process.kill()
    process.communicate()
    return any((folder / RUN).glob(".*.tmp"))


def state(folder):
    arrays = checkpoint.read_archive(checkpoint.checkpoints(folder / RUN)[-1])
    return {name: array for name, array in arrays.items() if name != "progress"}


def interrupt(folder, epochs, kills, draw):
    """Start the run again and again and kill it each time.

    Returns:
        How often a checkpoint was half written.
    """
    half_written = 0
    for number in range(1, kills + 1):
        process = train(folder, epochs, "--checkpoint_minutes=0")
        wait_until_it_trains(process)
        moment = (draw.randint(0, 60), number % 2 == 0, draw.uniform(0, 0.1))
        caught = kill(process, folder, *moment)
        half_written += caught
        words = ", a checkpoint half written" if caught else ""
        print(f"kill {number}: step {newest_step(folder)}{words}", flush=True)
    return half_written


def compare(alone, killed):
    """Exit with a message if the two runs differ. Returns the number of arrays in each."""
    expected = state(alone)
    actual = state(killed)
    different = [name for name in expected if not np.array_equal(expected[name], actual.get(name))]
    left = [str(path) for path in killed.rglob("*.tmp")]
    if different or left or expected.keys() != actual.keys():
        sys.exit(f"DIFFERENT: {different[:5]} of {len(expected)} arrays; left behind: {left}")
    return len(expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="how often the run is killed")
    parser.add_argument("--epochs", type=int, default=20, help="length of both runs")
    parser.add_argument("--seed", type=int, default=1, help="random seed for the kills' moments")
    arguments = parser.parse_args()
    epochs = f"--max_epochs={arguments.epochs}"
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        alone, killed = pathlib.Path(first), pathlib.Path(second)
        finish(train(alone, epochs))
        draw = random.Random(arguments.seed)
        half_written = interrupt(killed, epochs, arguments.kills, draw)
        finish(train(killed, epochs))
        arrays = compare(alone, killed)
    print(
        f"{arguments.kills} kills, {half_written} while a checkpoint was written: all {arrays} "
        "arrays are equal bit for bit"
    )


if __name__ == "__main__":
    main()
