"""Law: one place makes a model of a run's description and sets its weights: training, scoring,
export and pictures ask it.
"""

import ast
import pathlib

import pytest

from keras_transformer.tasks import TASKS, module_class, task_class
from keras_transformer.tasks.task import Task

ROOT = pathlib.Path(__file__).parents[2] / "keras_transformer"


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
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.rglob("*.py"))
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
    # A task of a kind has no other.
    assert not {"build", "module"} & set(dir(Task))
