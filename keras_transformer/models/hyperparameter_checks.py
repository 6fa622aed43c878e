"""What every architecture asks of its sizes, probabilities and choices (the columns of table 3,
Vaswani et al. 2017).
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any


def from_dictionary(kind: type, values: Mapping[str, Any]) -> Any:
    """The way back from `as_dict`.

    Args:
        kind: a dataclass of hyperparameters.
        values: its fields by name; one that is missing has its default.

    Raises:
        ValueError: naming the fields that it has not, or those without a default that are missing.
    """
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    if unknown := sorted(values.keys() - fields.keys()):
        raise ValueError(
            f"the model was written by another version: this one does not know the hyperparameter "
            f"{', '.join(unknown)}. Use the version that wrote it, or train again."
        )
    needed = [name for name, default in fields.items() if default is dataclasses.MISSING]
    if missing := [name for name in needed if name not in values]:
        raise ValueError(
            f"the hyperparameters must have {', '.join(needed)}. Received: some without "
            f"{', '.join(missing)}. Copy the description of the model again."
        )
    return kind(**values)


def check_sizes(hyperparameters: Any, names: Iterable[str], optional: Iterable[str] = ()) -> None:
    """Refuse a size that is no integer of at least 1.

    Args:
        hyperparameters: has the sizes as attributes.
        names: of the sizes.
        optional: those that may be None.

    Raises:
        ValueError: naming the size.
    """
    for name in names:
        value = getattr(hyperparameters, name)
        if value is None and name in optional:
            continue
        if not isinstance(value, int) or value < 1:
            raise ValueError(
                f"`{name}` must be an integer of at least 1. Received: {name}={value!r}."
            )


def check_probabilities(hyperparameters: Any, names: Iterable[str]) -> None:
    """Refuse what is no probability in [0, 1). Arguments and errors as in `check_sizes`."""
    for name in names:
        value = getattr(hyperparameters, name)
        if not isinstance(value, (int, float)) or not 0 <= value < 1:
            raise ValueError(
                f"`{name}` must be a probability in [0, 1). Received: {name}={value!r}."
            )


def check_choices(hyperparameters: Any, choices: Mapping[str, Iterable[str]]) -> None:
    """Refuse what is none of the choices, which are given by name.

    Raises:
        ValueError: naming the field and its choices.
    """
    for name, allowed in choices.items():
        value = getattr(hyperparameters, name)
        if value not in list(allowed):
            raise ValueError(
                f"`{name}` must be {' or '.join(allowed)}. Received: {name}={value!r}."
            )


def check_even(hyperparameters: Any, name: str) -> None:
    """Refuse a width that cannot be halved.

    Raises:
        ValueError: naming the width, with the next one that can.
    """
    value = getattr(hyperparameters, name)
    if value % 2:
        raise ValueError(f"`{name}` must be even. Received: {name}={value}. Try {value + 1}.")
