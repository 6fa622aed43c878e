"""How many small changes to the source do the tests notice? `python -m
benchmarks.mutants.mutation` (`make mutants`).

Surveys first which file of tests executes which line, and how long it takes. Then draws mutants
(`changes`) and runs for each the file of tests of the same name, then others that
execute its line: those of its room first, quick ones first, up to some seconds. Tests of the slow
lane are left out.

A mutant lives in a copy of the repository. Its tests run in a fork of this process, which has
imported pytest and TensorFlow but has computed nothing: TensorFlow's threads do not survive a fork.
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

from benchmarks.mutants.changes import Mutant, compiles, sites
from benchmarks.mutants.survey import QUIET, Survey

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = pathlib.Path("keras_transformer")
PACKAGES = ("keras_transformer", "pipelines")
ROOMS = ("layers", "models", "training", "decoding")
# What is imported before the forks.
HEAVY = (
    *("pytest", "hypothesis", "xdist", "tensorflow", "tensorflow_text", "keras", "sacrebleu"),
    *("torch", "sentencepiece", "rich.progress", "absl.app"),
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


def copy_of_repository(folder):
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    for name in filter(os.path.exists, listed.stdout.splitlines()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(name, folder / name)
    return folder


def fork_tests(folder, tests, options):
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
        sys.dont_write_bytecode = True
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
    """Runs jobs, some at a time, each in a copy of the repository."""

    def __init__(self, survey, folders, most_seconds, options):
        self.survey = survey
        self.free = folders
        self.most_seconds = most_seconds
        self.options = options

    def results(self, mutants):
        """Each mutant with the stage that killed it, or "survived", in the order of their ends."""
        waiting = list(reversed(mutants))
        running = {}
        while waiting or running:
            while waiting and self.free:
                job = self.begin(waiting.pop())
                if not job.stages:  # no test executes the line
                    self.end(job)
                    yield job, "survived"
                    continue
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
        stages = self.survey.stages(mutant, self.most_seconds)
        job = Job(mutant, stages, self.free.pop())
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
        job.limit = FACTOR * sum(self.survey.seconds[test] for test in tests) + SECONDS
        return fork_tests(job.folder, tests, ["-x", *self.options])

    def verdict(self, child, job):
        """None while the tests run."""
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
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
            folder = pathlib.Path(room) if room.startswith("pipelines") else PACKAGE / room
            yield from sorted(folder.rglob("*.py"))


def changed_since(commit):
    """The files of the packages that are not as they were at a commit."""
    command = ["git", "diff", "--name-only", "--diff-filter=d", commit, "--", *PACKAGES]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    names = map(pathlib.Path, listed.stdout.splitlines())
    return [path for path in names if path.suffix in (".py", ".flags")]


def draw(files, count, seed):
    """So many mutants of different places, every place as likely as another."""
    generator = random.Random(seed)
    places = [site for path in files for site in sites(path)]
    generator.shuffle(places)
    good = ([mutant for mutant in site if compiles(mutant)] for site in places)
    mutants = (generator.choice(site) for site in good if site)
    return [mutant for mutant, _ in zip(mutants, range(count), strict=False)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rooms", default=",".join(ROOMS), help="also commands, pipelines")
    parser.add_argument("--changed", help="only files changed since this commit, of any room")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=100, help="of tests after the first file")
    parser.add_argument("--tests", default="tests", help="folders of tests")
    parser.add_argument("--survey", help="folder to keep the survey in, or to take it from")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    arguments, options = parser.parse_known_args()
    os.chdir(ROOT)
    rooms = arguments.rooms.split(",")
    files = changed_since(arguments.changed) if arguments.changed else paths(rooms)
    mutants = draw(files, arguments.count, arguments.seed)
    if arguments.list:
        print(*mutants, sep="\n")
        return
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTRAOP_THREADS": "1"}
    for name in HEAVY:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(arguments.survey or work).resolve()
        copies = [work / str(number) for number in range(arguments.processes)]
        tests = arguments.tests.split(",")
        survey = Survey(copy_of_repository(copies[0]), tests, arguments.processes)
        for folder in copies[1:]:
            shutil.copytree(copies[0], folder, dirs_exist_ok=True)
        report(Run(survey, copies, arguments.seconds, options), mutants)


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
