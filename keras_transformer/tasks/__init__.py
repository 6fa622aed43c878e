"""The tasks that a model can learn, each in its own folder: see `task.Task`. This file finds the
folders, and imports only the options of each.
"""

import dataclasses
import importlib
import pkgutil

from keras_transformer.runs.options import AdapterChoice, FineTuning
from keras_transformer.saved_models.options import ExportOptions
from keras_transformer.tasks.options import Registered
from keras_transformer.training.options import (
    Averaging,
    Batches,
    Course,
    ObjectiveOptions,
    OptimizerOptions,
    RunOptions,
    Seed,
)
from pipelines.options import Options, option

# The options of training that all tasks share.
TRAINING = (
    *(Seed, Batches, ObjectiveOptions, OptimizerOptions, Course, FineTuning, AdapterChoice),
    *(Averaging, RunOptions, ExportOptions),
)


def _registered() -> dict[str, Registered]:
    """Return the tasks that the folders here declare."""
    tasks: dict[str, Registered] = {}
    for folder in pkgutil.iter_modules(__path__):
        if folder.ispkg:
            home = importlib.import_module(f"{__name__}.{folder.name}.options")
            for name, task in home.TASKS.items():
                tasks[name] = dataclasses.replace(task, folder=folder.name)
    return dict(sorted(tasks.items(), key=lambda pair: pair[1].place))


# By the name in a run's `model.json`. Runs of 0.5 have none: they are of "translation".
TASKS = _registered()
OF_SENTENCES = tuple(name for name, task in TASKS.items() if task.makes_sentences)
*_FIRST, _LAST = (task.aim for task in TASKS.values())


class TaskChoice(Options):
    """Task."""

    task: str = option(
        "translation", f"What is learned: {'; '.join(_FIRST)}; or {_LAST}.", choices=tuple(TASKS)
    )


# The task of an imported encoder without a head, which nothing trains.
IMPORTED_ALONE = "sentence_vectors"
IMPORTED = (
    "import_model wrote it, and its SavedModel beside it, which predict asks for vectors; nothing "
    "scores them."
)
ANOTHER = (
    "It is another program's, which has to score it, and to export it by "
    "`keras_transformer.export.run` of its class."
)


def task_class(name: str) -> type:
    """Import the `Task` class of a name."""
    if name not in TASKS:
        raise ValueError(
            f"the task of a run must be one of {', '.join(TASKS)}. Received: task={name!r}. "
            f"{IMPORTED if name == IMPORTED_ALONE else ANOTHER}"
        )
    task = TASKS[name]
    home = importlib.import_module(f"{__name__}.{task.folder}.task")
    return getattr(home, task.task)
