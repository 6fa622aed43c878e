"""Which task a run or a SavedModel is of."""

from collections.abc import Mapping


def task_of(description: Mapping) -> str:
    """The task of a run, from its `model.json`. Runs of 0.5 do not say it: they are translators."""
    return description.get("task", "translation")
