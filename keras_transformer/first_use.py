"""Import a package's public names at their first use: its options, or one layer, cost no import of
the rest, and none of TensorFlow on another Keras backend.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def imported_at_first_use(package: str, homes: Mapping[str, str]) -> tuple[Callable, Callable]:
    """Return `__getattr__` and `__dir__` of a package; `homes` maps a name to its module."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return get, lambda: [*vars(sys.modules[package]), *homes]
