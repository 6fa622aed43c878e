"""The `model.json` of a run or of a SavedModel, and what it says."""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from pipelines.json_files import read_object, refuse

COPY = "Copy it again from where the model was trained."
PARTS = ("hyperparameters", "decoding", "evaluation", "training", "corpus", "settings", "asked")


def read_description(path: pathlib.Path) -> dict[str, Any]:
    """Read a `model.json`; a ValueError says that it is damaged."""
    description = read_object(path, COPY)
    for name in ("task", *PARTS):
        kind, words = (str, "a string") if name == "task" else (dict, "an object")
        if not isinstance(part := description.get(name), kind | None):
            refuse(name, path, words, part, COPY)
    return description


def task_of(description: Mapping) -> str:
    """Return the task that a `model.json` names. Runs of 0.5 name none: they are translators."""
    return description.get("task", "translation")


def most_positions(description: Mapping) -> int:
    """Return the longest text, in tokens, that a language model has positions for."""
    sizes = description.get("hyperparameters", {})
    is_bound = sizes.get("positions") == "learned" and task_of(description) == "language_modelling"
    return sizes["max_positions"] if is_bound else 2**31 - 1


def hyperparameters_in(
    description: Mapping[str, Any], path: pathlib.Path, convert: Callable[[Mapping], Any]
) -> Any:
    """Return what `convert` makes of the hyperparameters in the `model.json` at a path."""
    sizes = description.get("hyperparameters")
    if not isinstance(sizes, dict):
        raise ValueError(
            f"{path} must have hyperparameters, the sizes of the model. Received: "
            f"{', '.join(description) or 'an empty object'}. {COPY}"
        )
    try:
        return convert(sizes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
