"""Systems that take turns: each runs in a process of its own and waits for orders, so that only one
works at a time.

Orders and answers are lines. A system first says {"ready": true}, or {"unavailable": why}. Then it
reads numbers of steps, one a line, and answers each with the time they took. This file uses the
standard library only, because some systems live in environments of their own.
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
    """Measure time since it was made: wall seconds, and seconds of all cores for this process."""

    def __init__(self):
        self._wall = time.perf_counter()
        self._cores = time.process_time()

    def read(self):
        return {
            "seconds": time.perf_counter() - self._wall,
            "core_seconds": time.process_time() - self._cores,
        }


class Parent:
    """A system's connection to the benchmark that started it.

    Attributes:
        task: what to build, from the command line.
    """

    def __init__(self):
        self.task = json.loads(sys.argv[1])
        # What libraries print must go to the log, not between the answers.
        self._answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def say(self, **answer):
        print(json.dumps(answer), file=self._answers, flush=True)

    def orders(self):
        """Yield numbers of steps, until the benchmark closes the connection."""
        for line in sys.stdin:
            yield int(line)

    def serve(self, step):
        """Carry out every order and answer it.

        Args:
            step: a function of the number of a batch, which trains on that batch before it returns.
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
    """The benchmark's connection to a system, which it starts.

    Args:
        module: the system's program, such as "benchmarks.trainers.ours".
        task: what to build, JSON-serializable.
        log: the file that takes what the system and its libraries print.
        python: the interpreter of the system's environment.

    Attributes:
        unavailable: the reason why the system cannot run here; None if it can.
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
        """Order a number of steps. Returns the answer."""
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
