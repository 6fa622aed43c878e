"""Settings of config.json that must have one value: with another, a model of that family computes
what ours does not.
"""

import json
from collections.abc import Mapping
from typing import Any

ONE_OF_SEVERAL = "single_label_classification"


def refuse_others(config: Mapping, wanted: Mapping[str, Any], family: str) -> None:
    """Refuse a config.json with another setting.

    Args:
        config: config.json. A setting that it does not name has the wanted value.
        wanted: values by name.
        family: whose models they are, for the error.

    Raises:
        ValueError: naming the first setting that has another value.
    """
    for name, value in wanted.items():
        if config.get(name, value) != value:
            raise ValueError(
                f"`{name}` of config.json must be {_as_written(value)}: we have no {family} with "
                f"another. Import another model. Received: {_as_written(config[name])}."
            )


def refuse_no_choice(config: Mapping, architecture: str, labels: int) -> None:
    """Refuse a classifier that does not choose one among several labels.

    Args:
        config: config.json.
        architecture: the class that it names, for the error.
        labels: how many there are.

    Raises:
        ValueError: naming what it does in place of that.
    """
    problem = config.get("problem_type") or ONE_OF_SEVERAL
    if problem != ONE_OF_SEVERAL or labels < 2:
        raise ValueError(
            f"a {architecture} must have problem_type={ONE_OF_SEVERAL} and at least 2 labels in "
            f"config.json, for we give each input one of them. Received: problem_type={problem}, "
            f"{labels} labels. Import another model."
        )


def _as_written(value):
    """A value as config.json has it, words without quotes."""
    return value if isinstance(value, str) else json.dumps(value)
