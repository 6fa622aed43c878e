"""A run that is killed again and again ends where the uninterrupted one ends, bit for bit: `python
-m benchmarks.soak` (`make soak`).

Trains the toy recipe with dropout twice from the same seed. The one run is left alone. The other
saves at every step and is killed by SIGKILL, half of the times at a random moment, half of the
times while a checkpoint is being written; then the same command is given again. Prints a line a
kill, and fails if a weight, an optimizer slot or a random state differs, or a temporary file is
left.
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
COMMAND = [
    sys.executable,
    "-m",
    "keras_transformer.train",
    "--flagfile=toy.flags",
    "--dropout=0.1",
    "--model_dir=run",
    "--export_dir=saved",
]
COMMAND += ["--validation_sentences=0", "--keep_checkpoints=2", "--average_checkpoints=1"]


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
    steps = [int(path.stem.removeprefix("step-")) for path in checkpoint.checkpoints(folder / RUN)]
    return steps[-1] if steps else 0


def kill(process, folder, steps, while_writing, seconds):
    """Kill after so many steps and seconds, or in the writing of what comes after them; tell
    whether a checkpoint was half written.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    epochs = f"--max_epochs={arguments.epochs}"
    with tempfile.TemporaryDirectory() as alone, tempfile.TemporaryDirectory() as killed:
        alone = pathlib.Path(alone)
        killed = pathlib.Path(killed)
        finish(train(alone, epochs))
        half_written = 0
        for number in range(1, arguments.kills + 1):
            process = train(killed, epochs, "--checkpoint_minutes=0")
            wait_until_it_trains(process)
            caught = kill(
                process,
                killed,
                draw.randint(0, 60),
                while_writing=number % 2 == 0,
                seconds=draw.uniform(0, 0.1),
            )
            half_written += caught
            print(
                f"kill {number}: step "
                f"{newest_step(killed)}{', a checkpoint half written' if caught else ''}",
                flush=True,
            )
        finish(train(killed, epochs))
        expected = state(alone)
        actual = state(killed)
        different = [
            name for name in expected if not np.array_equal(expected[name], actual.get(name))
        ]
        left = [str(path) for path in killed.rglob("*.tmp")]
        if different or left or expected.keys() != actual.keys():
            sys.exit(f"DIFFERENT: {different[:5]} of {len(expected)} arrays; left behind: {left}")
        print(
            f"{arguments.kills} kills, {half_written} in mid-checkpoint: all {len(expected)} "
            "arrays are equal bit for bit"
        )


if __name__ == "__main__":
    main()
