"""Untrained models and modules of a task, and the flags of its scoring."""

from keras_transformer.tasks.score import DEFAULTS

# The values of `evaluate`'s flags where none is given.
NO_FLAGS = {**DEFAULTS, "split": "test"}


def new_model(task):
    return task.module_class.build(task.description(), "float32")


def new_module(task, folder):
    """The module of an untrained model of a task whose files are in a run's folder."""
    folder.describe({**task.description(), "task": task.name})
    return task.module_class.of_model(new_model(task), folder, task.values)
