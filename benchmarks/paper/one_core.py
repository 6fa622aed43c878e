"""A training on one core, on a clock that does not see what else the machine does: `python -m
benchmarks.paper.one_core -- --flagfile=multi30k.flags --data_dir=multi30k --seed=2`.

It is `python -m keras_transformer.train` with the flags after `--`, bound to one core. Minutes,
such as those of --max_minutes and of checkpoints, are not the wall's: they are the processor's
seconds divided by 1.5, because two free cores do 1.5 times as much of a training as one. So 90
minutes take 135 on one core, and make as many updates as 90 minutes on two, whatever runs beside.
Two seeds run side by side with `--core=0` and `--core=1`. The same command again resumes where it
was interrupted.
"""

import argparse
import os
import runpy
import sys
import time

from keras_transformer.startup import start_tensorflow

MODULE = "keras_transformer.train"


def processor_stopwatch(cores_worth: float) -> type:
    """The class of a `Stopwatch` that counts the seconds of this process's processor.

    Args:
        cores_worth: what they are divided by.
    """
    from keras_transformer.training.ending import Stopwatch

    class ProcessorStopwatch(Stopwatch):
        """Processor seconds that a run has trained, divided, over all its sessions."""

        def __init__(self, seconds=0.0):
            self._started = time.process_time() / cores_worth - seconds

        @property
        def seconds(self):
            return time.process_time() / cores_worth - self._started

    return ProcessorStopwatch


def arguments_of(argv):
    """The flags of this command, and those of the training after `--`."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--core", type=int, help="Which one. Default: the first.")
    parser.add_argument(
        "--cores_worth",
        type=float,
        default=1.5,
        help="What the processor's seconds are divided by: how much more than one core two do.",
    )
    if "--" not in argv:
        parser.parse_args(argv)
        parser.error("the flags of the training are missing: put them after `--`.")
    behind = argv.index("--")
    return parser.parse_args(argv[:behind]), argv[behind + 1 :]


def main():
    own, further = arguments_of(sys.argv[1:])
    if "--report" in further:
        sys.exit("--report estimates the cost by the wall's clock: leave it out.")
    cores = os.sched_getaffinity(0)
    core = min(cores) if own.core is None else own.core
    if core not in cores:
        sys.exit(f"--core must be one of {sorted(cores)}. Received: {core}.")
    # Before TensorFlow makes a thread for each core.
    os.sched_setaffinity(0, {core})
    start_tensorflow()
    from keras_transformer.runs import run

    run.Stopwatch = processor_stopwatch(own.cores_worth)
    sys.argv[1:] = further
    runpy.run_module(MODULE, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
