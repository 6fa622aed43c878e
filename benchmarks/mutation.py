"""How many small changes to the source do the tests notice? `python -m benchmarks.mutation`.

Draws mutants (`benchmarks.mutants`) and runs for each the tests that should fail: the file of tests
of the same name, then its room, then the rooms that build on it, in the fast lane. A mutant lives
in a copy of the repository. Its tests run in a fork of this process, which has imported pytest and
TensorFlow but has computed nothing: TensorFlow's threads do not survive a fork.
"""

import argparse
import dataclasses
import importlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

from benchmarks.mutants import Mutant, compiles, sites

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = pathlib.Path("keras_transformer")
ROOMS = ("layers", "models", "training", "decoding")
# What is imported before the forks.
HEAVY = (
    *("pytest", "hypothesis", "xdist", "tensorflow", "tensorflow_text", "keras", "sacrebleu"),
    *("torch", "sentencepiece", "rich.progress", "absl.app"),
)
# The tests of other rooms that notice a change, the quick ones first.
NEXT = {
    "layers": ("models", "decoding", "training", "translator", "artifacts", "integration"),
    "models": ("layers", "decoding", "training", "runs", "translator", "artifacts", "integration"),
    "training": ("runs", "tasks", "integration"),
    "decoding": ("translator", "artifacts", "integration"),
    "flagfiles": ("models", "integration"),
    "commands": ("tasks", "runs", "translator", "artifacts", "integration"),
}
QUIET = (
    *("-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-m", "not slow"),
    *("-W", "ignore:Module already imported"),
)
# A stage is too long after so many times its usual seconds, and so many seconds more.
FACTOR = 4
SECONDS = 60


@dataclasses.dataclass
class Job:
    """A mutant, and the stages of tests that it has to survive."""

    mutant: Mutant
    stages: list
    folder: pathlib.Path
    stage: int = 0
    started: float = 0.0
    limit: float = 0.0


def stages(path):
    """Tests for a file of the package, in the order in which they run: lists of paths."""
    room, name = path.parent.name, path.stem.strip("_")
    room = "commands" if room == PACKAGE.name else room
    here = pathlib.Path("tests", "" if room in ("commands", "flagfiles") else room)
    mirrors = sorted(here.glob(f"test_{name}*.py")) + sorted(here.glob("test_flag*.py"))
    own = here if here.name != "tests" else pathlib.Path("tests/test_flags.py")
    others = (pathlib.Path("tests", other) for other in NEXT[room])
    found = [mirrors, [own], *([other] for other in others)]
    return [[str(test) for test in some if test.exists()] for some in found if some]


def copy_of_repository(folder):
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(name, folder / name)
    return folder


def fork_tests(folder, tests, options, writes_bytecode=False):
    """Run tests in a child, in a copy of the repository; return its process id. Its log is beside
    the copy.
    """
    child = os.fork()
    if child:
        return child
    status = 3
    try:
        os.setsid()
        log = os.open(f"{folder}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)
        os.chdir(folder)
        sys.path[0] = str(folder)
        sys.dont_write_bytecode = not writes_bytecode
        os.environ |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        import pytest

        status = pytest.main([*QUIET, f"--basetemp={folder}.tmp", *options, *tests])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


class Run:
    """Runs jobs, some at a time."""

    def __init__(self, work, processes, options):
        self.options = options
        self.free = [copy_of_repository(work / str(number)) for number in range(processes)]
        self.seconds = {}

    def baseline(self, all_stages):
        """Run every stage without a mutant: all must pass, and their times are the measure."""
        for tests in all_stages:
            begun = time.monotonic()
            for folder in self.free:
                child = fork_tests(folder, tests, self.options, writes_bytecode=True)
                _, status = os.waitpid(child, 0)
                if os.waitstatus_to_exitcode(status) not in (0, 5):
                    raise SystemExit(pathlib.Path(f"{folder}.log").read_text()[-5000:])
                if folder == self.free[0]:
                    self.seconds[tuple(tests)] = time.monotonic() - begun
            print(f"{self.seconds[tuple(tests)]:6.1f} s unchanged: {' '.join(tests)}", flush=True)

    def results(self, mutants):
        """Each mutant with the stage that killed it, or "survived", in the order of their ends."""
        waiting = list(reversed(mutants))
        running = {}
        while waiting or running:
            while waiting and self.free:
                job = self.begin(waiting.pop())
                running[self.start(job)] = job
            time.sleep(0.05)
            for child, job in list(running.items()):
                verdict = self.verdict(child, job)
                if verdict is None:
                    continue
                del running[child]
                if verdict == "survived" and job.stage + 1 < len(job.stages):
                    job.stage += 1
                    running[self.start(job)] = job
                    continue
                self.end(job)
                yield job, verdict

    def begin(self, mutant):
        job = Job(mutant, stages(mutant.path), self.free.pop())
        (job.folder / mutant.path).write_text(mutant.source(), encoding="utf-8")
        for cached in (job.folder / mutant.path.parent).glob(f"__pycache__/{mutant.path.stem}.*"):
            cached.unlink()
        return job

    def end(self, job):
        shutil.copy2(job.mutant.path, job.folder / job.mutant.path)
        self.free.append(job.folder)

    def start(self, job):
        tests = job.stages[job.stage]
        job.started = time.monotonic()
        job.limit = FACTOR * self.seconds[tuple(tests)] + SECONDS
        return fork_tests(job.folder, tests, ["-x", *self.options])

    def verdict(self, child, job):
        """None while the tests run."""
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            survived = os.waitstatus_to_exitcode(status) in (0, 5)
            return "survived" if survived else " ".join(job.stages[job.stage])
        if time.monotonic() - job.started > job.limit:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"time ({job.limit:.0f} s), {' '.join(job.stages[job.stage])}"
        return None


def paths(rooms):
    for room in rooms:
        if room == "commands":
            yield from sorted(PACKAGE.glob("*.py"))
        elif room == "flagfiles":
            yield from sorted((PACKAGE / room).glob("*.flags"))
        else:
            yield from sorted((PACKAGE / room).rglob("*.py"))


def draw(rooms, count, seed):
    """So many mutants of different places, every place as likely as another."""
    generator = random.Random(seed)
    places = [site for path in paths(rooms) for site in sites(path)]
    generator.shuffle(places)
    good = ([mutant for mutant in site if compiles(mutant)] for site in places)
    mutants = (generator.choice(site) for site in good if site)
    return [mutant for mutant, _ in zip(mutants, range(count), strict=False)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", default=",".join(ROOMS), help=f"of {', '.join(NEXT)}")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    arguments, options = parser.parse_known_args()
    os.chdir(ROOT)
    mutants = draw(arguments.rooms.split(","), arguments.count, arguments.seed)
    if arguments.list:
        print(*mutants, sep="\n")
        return
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTRAOP_THREADS": "1"}
    for name in HEAVY:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(pathlib.Path(folder), arguments.processes, options)
        run.baseline(
            {tuple(stage): stage for mutant in mutants for stage in stages(mutant.path)}.values()
        )
        report(run, mutants)


def report(run, mutants):
    survivors = []
    begun = time.monotonic()
    for number, (job, verdict) in enumerate(run.results(mutants), 1):
        print(f"{number:4d} {time.monotonic() - begun:6.0f} s  {verdict}  {job.mutant}", flush=True)
        survivors += [job.mutant] if verdict == "survived" else []
    killed = len(mutants) - len(survivors)
    print(f"\nkilled {killed} of {len(mutants)}: {killed / len(mutants):.1%}. Survivors:")
    print(*(f"- {mutant}" for mutant in survivors), sep="\n")


if __name__ == "__main__":
    main()
