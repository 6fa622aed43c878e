"""Trainings side by side, each on a core of its own."""

import ctypes
import os
import pathlib
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

# Of Linux: the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1
_C = ctypes.CDLL(None)


def side_by_side(function: Callable, jobs: Iterable[tuple]) -> list:
    """Call a function for each job, as many at once as there are cores.

    Args:
        function: takes a core, and what a job has.
        jobs: in the order of their beginning.

    Returns:
        What the function gave, in the order of the jobs.
    """
    cores = queue.SimpleQueue()
    every = sorted(os.sched_getaffinity(0))
    for core in every:
        cores.put(core)

    def call(job):
        core = cores.get()
        try:
            return function(core, *job)
        finally:
            cores.put(core)

    with ThreadPoolExecutor(len(every)) as pool:
        return list(pool.map(call, jobs))


def run_alone(folder: pathlib.Path, command: Sequence[str], core: int | None) -> None:
    """Run a module, on one core or, with None, on all; its output goes to `<folder>.log`.

    It ends with the process that began it, as if by SIGTERM: another one would train in the same
    folder.

    Raises:
        SystemExit: if it fails, with its log.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.parent / f"{folder.name}.log"

    def begin():
        if core is not None:
            os.sched_setaffinity(0, {core})
        _C.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    with open(path, "a", encoding="utf-8") as log:
        done = subprocess.run(
            [sys.executable, "-m", *command], stdout=log, stderr=subprocess.STDOUT, preexec_fn=begin
        )
    if done.returncode:
        raise SystemExit(f"{command[0]} failed for {folder}: see the end of {path}.")


def train_alone(folder: pathlib.Path, arguments: Sequence[str], core: int | None) -> None:
    """Train a run to its end, or resume it.

    Args:
        folder: of the run.
        arguments: of `keras_transformer.train`, but for its folder.
        core: as in `run_alone`.

    Raises:
        SystemExit: if it fails, or was stopped by SIGTERM, which is no failure of the training.
    """
    run_alone(folder, ["keras_transformer.train", *arguments, f"--model_dir={folder}"], core)
    if not (folder / "averaged.npz").is_file():
        raise SystemExit(
            f"{folder} is not trained to its end: it was stopped. The same command again goes on."
        )
