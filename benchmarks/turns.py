"""Systems that take turns: each trains in a process of its own, and is spoken to in lines, so that
only one works at a time.

The trainer says {"ready": true} once it is built, or {"unavailable": why}. Then it reads numbers of
steps, one a line, and answers each with what they took. Standard library only: the trainers live in
environments of their own.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]


class Clock:
    """Seconds from its making on: on the wall, and those that all cores worked for this process."""

    def __init__(self):
        self._wall = time.perf_counter()
        self._cores = time.process_time()

    def read(self):
        return {
            "seconds": time.perf_counter() - self._wall,
            "core_seconds": time.process_time() - self._cores,
        }


class Parent:
    """The trainer's end of the line.

    Attributes:
        task: what the parent wants built, from the command line.
    """

    def __init__(self):
        self.task = json.loads(sys.argv[1])
        # What libraries print goes to the log, not between the answers.
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def say(self, **answer):
        print(json.dumps(answer), file=self._answers, flush=True)

    def orders(self):
        """Numbers of steps to train, until the parent has enough."""
        for line in sys.stdin:
            yield int(line)

    def serve(self, step):
        """Answer every order.

        Args:
            step: takes the number of a batch, trains on it, and returns when that is done.
        """
        self.say(ready=True)
        done = 0
        for count in self.orders():
            clock = Clock()
            for number in range(done, done + count):
                step(number)
            done += count
            self.say(**clock.read())


class Trainer:
    """The parent's end of the line.

    Args:
        module: the trainer's, such as "benchmarks.trainers.ours".
        task: JSON-serializable, what it shall build.
        log: a file for what it and its libraries print.
        python: the interpreter of its environment.

    Attributes:
        unavailable: why the system cannot run here; None if it can.
    """

    def __init__(self, module, task, log, python=sys.executable):
        self.log = pathlib.Path(log)
        with open(log, "w") as file:
            self._process = subprocess.Popen(
                [str(python), "-m", module, json.dumps(task)],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
            )
        self.unavailable = self._answer().get("unavailable")

    def train(self, steps):
        """Train so many steps; returns the answer."""
        with contextlib.suppress(BrokenPipeError):
            print(steps, file=self._process.stdin, flush=True)
        return self._answer()

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _answer(self):
        line = self._process.stdout.readline()
        if not line:
            last = self.log.read_text(errors="replace").strip().splitlines()[-1:]
            return {"unavailable": f"died: {' '.join(last)[:200]}; more in {self.log}"}
        return json.loads(line)
