"""Law: a task has one place. Without its folder the program works and lacks only this task, and one
module builds its model.
"""

import ast
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from keras_transformer.tasks import TASKS, module_class, task_class
from keras_transformer.tasks.task import Task

ROOT = pathlib.Path(__file__).parents[2]
WHOLE = """
import importlib, pathlib
for path in sorted(pathlib.Path("keras_transformer").rglob("*.py")):
    try:
        importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    except ModuleNotFoundError as error:
        # An extra may not be installed.
        if (error.name or "").startswith(("keras_transformer", "pipelines")):
            raise
from keras_transformer.tasks import TASKS
print(*TASKS)
"""


@pytest.fixture
def answers_without(tmp_path):
    """A function that runs `WHOLE` and the laws of the house in a copy of the program without a
    folder, and yields the processes.
    """

    def answers(folder):
        for package in ("keras_transformer", "pipelines"):
            shutil.copytree(ROOT / package, tmp_path / package)
        shutil.rmtree(tmp_path / folder)
        (tmp_path / "tests").mkdir()
        shutil.copy(ROOT / "tests" / "test_architecture.py", tmp_path / "tests")
        laws = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_architecture.py"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        for arguments in (["-c", WHOLE], laws):
            yield subprocess.run(
                [sys.executable, *arguments],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )

    return answers


def test_without_pictures_the_program_is_whole(answers_without):
    whole, laws = answers_without("keras_transformer/tasks/pictures")
    assert whole.returncode == 0, whole.stderr
    assert whole.stdout.split() == [
        *("translation", "parsing", "language_modelling", "masking", "classification", "tagging")
    ]
    assert laws.returncode == 0, laws.stdout


def test_control_without_translation_the_program_is_not_whole(answers_without):
    whole = next(answers_without("keras_transformer/tasks/translation"))
    assert whole.returncode == 1
    assert "tasks.translation" in whole.stderr


# One place builds the model of a run and sets its weights, for training, scoring, export and
# pictures.
PACKAGE = pathlib.Path(__file__).parents[2] / "keras_transformer"


def calls(name, source):
    """Whether something calls a method of a name, on anything but `super()`."""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and not isinstance(node.func.value, ast.Call)
        for node in ast.walk(ast.parse(source))
    )


def test_one_place_sets_the_weights_of_a_run():
    callers = [
        str(path.relative_to(PACKAGE))
        for path in sorted(PACKAGE.rglob("*.py"))
        if calls("load_weights", path.read_text(encoding="utf-8"))
    ]
    # A run's folder reads a checkpoint; the end of a training has its model already.
    assert callers == ["inference/loading.py", "runs/folder.py", "runs/run.py"]


def test_control_another_loader_is_seen():
    assert calls("load_weights", "folder.load_weights(model)")
    assert not calls("load_weights", "super().load_weights(model)")


@pytest.mark.parametrize("name", TASKS)
def test_a_task_builds_by_the_module_that_is_served(name):
    task = task_class(name)
    assert task.module_class is module_class(name)
    # The base class has no other way to build.
    assert not {"build", "module"} & set(dir(Task))
