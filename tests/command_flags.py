"""Flags as a command has them, and untrained models and modules of a task, in tests."""

import importlib

from absl import flags as absl_flags

from keras_transformer.flagfiles import expand_flagfiles
from keras_transformer.flags.arguments import parse
from keras_transformer.flags.definition import define
from keras_transformer.flags.help_pages import help_of
from keras_transformer.flags.scopes import COMMANDS, every_place
from keras_transformer.tasks import TRAINING
from keras_transformer.tasks.score import DEFAULTS
from pipelines.options import places

__all__ = ["COMMANDS", "EVERY_FLAG", "first_page", "flags_of", "names_of", "values_of_task"]
EVERY_FLAG = absl_flags.FlagValues()
define((place.option for declared in every_place().values() for place in declared), EVERY_FLAG)


def flags_of(command, *arguments):
    """The flags of a command that was given arguments."""
    module = importlib.import_module(f"keras_transformer.{command}")
    FLAGS = absl_flags.FlagValues()
    parse(FLAGS, arguments, module.SECTIONS, getattr(module, "OF_TASKS", {}))
    return FLAGS


def first_page(command):
    """The page of a command's `--help`."""
    module = importlib.import_module(f"keras_transformer.{command}")
    more = [getattr(module, name, ()) for name in ("OF_TASKS", "EVERYDAY")]
    return help_of(["--help"], "", module.SECTIONS, *more)


def values_of_task(task, *arguments):
    """The values of flags for a task, those of other tasks too: nothing is refused."""
    FLAGS = absl_flags.FlagValues()
    define((place.option for place in places((*TRAINING, *task.options))), FLAGS)
    define((place.option for declared in every_place().values() for place in declared), FLAGS)
    FLAGS(["train", *expand_flagfiles(arguments)])
    return FLAGS.flag_values_dict()


def names_of(command):
    """The flags that a command reads, of all tasks and choices."""
    module = importlib.import_module(f"keras_transformer.{command}")
    of_tasks = getattr(module, "OF_TASKS", {}).values()
    sections = (*module.SECTIONS, *(section for inner in of_tasks for section in inner))
    return {place.option.name for place in places(sections)} & every_place().keys()


# The values of `evaluate`'s flags where none is given.
NO_FLAGS = {**DEFAULTS, "split": "test"}


def new_model(task):
    return task.module_class.build(task.description(), "float32")


def new_module(task, folder):
    """The module of an untrained model of a task whose files are in a run's folder."""
    folder.describe({**task.description(), "task": task.name})
    return task.module_class.of_model(new_model(task), folder, task.values)
