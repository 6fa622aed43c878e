"""Law: a task has one place. Without its folder the program works and lacks only this task, and one
module builds its model.
"""

import contextlib
import pathlib
import runpy
import shutil
import tempfile

import pytest
from shell import contents

from keras_transformer.tasks.task import Task

ROOT = pathlib.Path(__file__).parents[2]
WHOLE = """
import importlib, pathlib, sys
# The program that this one is forked from has imported the whole program.
for name in [name for name in sys.modules if name.startswith(("keras_transformer", "pipelines"))]:
    del sys.modules[name]
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
def imported_without(tmp_path, warm):
    """A function that copies the program without a folder, and imports all of the copy. It returns
    the exit status, the output and the errors.
    """

    def answer(folder):
        for package in ("keras_transformer", "pipelines"):
            shutil.copytree(ROOT / package, tmp_path / package)
        shutil.rmtree(tmp_path / folder)
        (tmp_path / "whole.py").write_text(WHOLE, encoding="utf-8")
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            status = warm.run("whole", [], tmp_path, streams)
            return status, *(contents(stream).decode() for stream in streams[1:])

    return answer


def test_without_pictures_the_program_is_whole(imported_without, tmp_path):
    status, output, errors = imported_without("keras_transformer/tasks/pictures")
    assert status == 0, errors
    assert output.split() == [
        *("translation", "parsing", "language_modelling", "masking", "classification", "tagging")
    ]
    # Of the laws of the house, those that look at more than one module.
    (tmp_path / "tests").mkdir()
    laws = runpy.run_path(shutil.copy(ROOT / "tests" / "test_architecture.py", tmp_path / "tests"))
    assert not any("tasks.pictures" in module for module in laws["MODULES"])
    laws["test_every_room_was_read"]()
    laws["test_no_two_files_have_the_same_name"]()


def test_control_without_translation_the_program_is_not_whole(imported_without):
    status, _, errors = imported_without("keras_transformer/tasks/translation")
    assert status == 1
    assert "No module named 'keras_transformer.tasks.translation" in errors


def test_a_task_builds_by_the_module_that_is_served():
    # The base class has no other way to build.
    assert not {"build", "module"} & set(dir(Task))
