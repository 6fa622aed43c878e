"""Systems that take turns: each runs in a process of its own and waits for orders, so that only one
works at a time.

Orders and answers are lines. A system first says {"ready": true}, or {"unavailable": why}. Then it
reads numbers of steps, one a line, and answers each with the time they took. This file uses the
standard library only, because some systems live in environments of their own.
"""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]


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
            step: a function of the number of a batch, which works on that batch before it returns.
                Where it returns a dictionary, that of the last is sent beside the time.
        """
        self.say(ready=True)
        steps_done = 0
        for count in self.orders():
            clock = Clock()
            for number in range(steps_done, steps_done + count):
                more = step(number)
            steps_done += count
            self.say(**clock.read(), **(more if isinstance(more, dict) else {}))


class System:
    """The benchmark's connection to a system, which it starts.

    Args:
        module: the system's program, such as "benchmarks.peers.ours".
        task: what to build, JSON-serializable.
        log: the file that takes what the system and its libraries print.
        python: the interpreter of the system's environment.

    Attributes:
        unavailable: the reason why the system cannot run here; None if it can.
        started: seconds until it was ready.
    """

    def __init__(self, module, task, log, python=sys.executable):
        self.log = pathlib.Path(log)
        clock = Clock()
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
        self.started = clock.read()["seconds"]

    def run(self, steps):
        """Order a number of steps. Returns the answer."""
        with contextlib.suppress(BrokenPipeError):
            print(steps, file=self._process.stdin, flush=True)
        return {**self._answer(), "started": self.started}

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


OURS = "benchmarks.peers.ours"
TORCH = "benchmarks.peers.torch_transformer"
CTRANSLATE2 = "benchmarks.peers.ctranslate2_model"
OPENNMT = "benchmarks.peers.opennmt_tf"
MARIAN = "benchmarks.peers.marian"
PORTABLE = "benchmarks.peers.portable"
# Of peers that need other packages than ours: the Python that makes an environment, and what pip
# installs into it. OpenNMT-tf 2.32 needs TensorFlow 2.13, which needs Python 3.11 at most.
ENVIRONMENTS = {
    OPENNMT: (
        *("python3.11", "OpenNMT-tf==2.32.0", "tensorflow==2.13.*", "numpy<2", "setuptools"),
        "sentencepiece>=0.2",
    ),
    MARIAN: (
        *(sys.executable, "transformers==5.23.0", "torch==2.13.0", "numpy", "sentencepiece>=0.2"),
    ),
}


def python_of(module):
    """The interpreter of a system; its environment is made once, in the user's cache folder.

    Raises:
        LookupError: if it cannot be made.
    """
    if module not in ENVIRONMENTS:
        return sys.executable
    name, *packages = ENVIRONMENTS[module]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    folder = cache / "keras_transformer" / module.rpartition(".")[2]
    python = folder / "bin" / "python"
    installed = folder / "installed"
    requirements = "\n".join(packages)
    if installed.exists() and installed.read_text() == requirements:
        return python
    maker = shutil.which(name)
    if not maker:
        raise LookupError(f"needs {name}, which was not found")
    print(f"installing {packages[0]} into {folder} ...", flush=True)
    install = [python, "-m", "pip", "install", "--quiet", *packages]
    for command in ([maker, "-m", "venv", "--clear", folder], install):
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode:
            reason = (process.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
            raise LookupError(f"could not be installed: {reason}")
    installed.write_text(requirements)
    return python


def starter(module, task, log):
    """A function that starts a `System` in its environment; or the reason why there is none."""
    try:
        return functools.partial(System, module, task, log, python_of(module))
    except LookupError as error:
        return str(error)


def take_turns(starters, rounds, steps=1):
    """Let systems work in turns (A B C A B C ...). The first round warms up and does not count.

    Args:
        starters: what `starter` gave, by name.
        rounds: number of rounds that count.
        steps: of a system in a round.

    Returns:
        Two dictionaries by name: the answers of each system, one a round; and the reasons why the
        others did not run.
    """
    unavailable = {name: start for name, start in starters.items() if isinstance(start, str)}
    running = {}
    answers = {}
    try:
        for name in [name for name in starters if name not in unavailable]:
            running[name] = starters[name]()
            if running[name].unavailable:
                unavailable[name] = running[name].unavailable
        for number in range(rounds + 1):
            for name in [name for name in starters if name not in unavailable]:
                answer = running[name].run(steps)
                if "unavailable" in answer:
                    unavailable[name] = answer["unavailable"]
                elif number:
                    answers.setdefault(name, []).append(answer)
            print(f"round {number} of {rounds}", flush=True)
    finally:
        for system in running.values():
            system.close()
    return {name: answers[name] for name in answers if name not in unavailable}, unavailable
