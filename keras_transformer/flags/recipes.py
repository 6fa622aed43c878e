"""Flag files read as data, for commands that compare several of them."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from absl import flags as absl_flags

from keras_transformer.flagfiles import expand_flagfiles
from keras_transformer.flags.arguments import parse
from keras_transformer.tasks import TASKS, TRAINING, TaskChoice

# Flags that have no use with --corpus=records.
NOT_OF_RECORDS = {"task", "mixture", "tree_leaves"}


def recipe_of_records(argv: Sequence[str], languages: Mapping[str, str]) -> list[str]:
    """Return arguments of `train` for prepared records: the flag files of the preparing command,
    whose sizes suit the text, and the languages, which may differ from the files'. Return none if
    a flag file does not suit records.
    """
    files = []
    for place, argument in enumerate(argv):
        name, equals, value = argument.partition("=")
        if name.lstrip("-") == "flagfile":
            files.append(f"--flagfile={value if equals else argv[place + 1]}")
    names = {argument.lstrip("-").partition("=")[0] for argument in expand_flagfiles(files)}
    if not files or names & NOT_OF_RECORDS:
        return []
    return [*files, *(f"--{name}={value}" for name, value in languages.items())]


def recipe(text: str) -> Mapping[str, Any]:
    """Return the values of training's options in a recipe, by name. A recipe is flag files and
    flags, separated by spaces; later ones override earlier ones.
    """
    arguments = [
        word if word.startswith("-") else f"--flagfile={word}" for word in shlex.split(text)
    ]
    values = absl_flags.FlagValues()
    try:
        of_tasks = {name: task.options for name, task in TASKS.items()}
        parse(values, arguments, (TaskChoice, *TRAINING), of_tasks)
    except ValueError as error:
        raise ValueError(f"{text}: {error}") from error
    return values.flag_values_dict()
