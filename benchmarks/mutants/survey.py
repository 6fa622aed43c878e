"""Which file of tests executes which line, and how long it takes (for `mutation`)."""

import collections
import itertools
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import coverage

# Of pytest, wherever tests run for mutants.
QUIET = (
    *("-q", "--randomly-dont-reorganize", "-p", "no:cacheprovider", "-m", "not slow"),
    *("-W", "ignore:Module already imported"),
)
# Commands run in processes of their own, which the survey does not see.
INTEGRATION = "tests/integration"


class Survey:
    """Which files of tests execute which lines, and the seconds that each takes.

    Args:
        folder: a copy of the repository. What was surveyed there is taken; else its tests run.
        tests: paths.
        processes: of pytest.
    """

    def __init__(self, folder, tests, processes):
        report = folder / "survey.xml"
        if not report.exists():
            options = [f"--numprocesses={processes}", "--dist=loadfile", f"--junitxml={report}"]
            options += ["--cov=keras_transformer", "--cov=pipelines", "--cov-context=test"]
            options += ["--cov-report="]
            command = [sys.executable, "-m", "pytest", *QUIET, *options, *tests]
            environment = os.environ | {"PYTHONPATH": str(folder)}
            process = subprocess.run(command, cwd=folder, env=environment, check=False)
            if process.returncode:
                report.unlink(missing_ok=True)
                raise SystemExit("The tests must pass before anything is changed.")
        self.folder = folder
        self.data = coverage.CoverageData(str(folder / ".coverage"))
        self.data.read()
        self.seconds = collections.Counter()
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            name = case.get("classname").replace(".", "/") + ".py"
            self.seconds[name] += float(case.get("time"))

    def stages(self, mutant, most_seconds):
        """Files of tests in the order in which they run: two lists."""
        room = mutant.path.parts[0 if mutant.path.parts[0] == "pipelines" else 1]
        lines = self.data.contexts_by_lineno(str(self.folder / mutant.path))
        contexts = {context for line in mutant.lines() for context in lines.get(line, ())}
        executing = {context.partition("::")[0] for context in contexts} & self.seconds.keys()
        if not executing or room.endswith(("flagfiles", ".py")):
            # Lines that are executed at import, and in other processes.
            rooms = (f"tests/{room}/", "tests/test_", INTEGRATION)
            executing |= {name for name in self.seconds if name.startswith(rooms)}
        mirrors = {name for name in executing if _mirrors(name, mutant.path)}
        rest = sorted(
            executing - mirrors,
            key=lambda name: (not name.startswith(f"tests/{room}/"), self.seconds[name]),
        )
        spent = itertools.accumulate(self.seconds[name] for name in rest)
        chosen = [name for name, until in zip(rest, spent, strict=True) if until <= most_seconds]
        chosen = chosen or rest[:1]  # one at least, however long it takes
        return [stage for stage in (sorted(mirrors), chosen) if stage]


def _mirrors(test, path):
    """Whether a file of tests is named after a file of the package, or has the laws of its room."""
    name = pathlib.PurePath(test).stem.removeprefix("test_")
    if "laws" in pathlib.PurePath(test).parts:
        return name == path.parts[1]
    if path.suffix == ".flags":
        return name == "paper"
    return path.parent.name in pathlib.PurePath(test).parts and name.startswith(path.stem)
