"""Names of a package that are imported when they are first used: who reads its options, or wants
one layer, waits for nothing else, and loads no TensorFlow on another Keras backend.
"""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def imported_at_first_use(package: str, homes: Mapping[str, str]) -> tuple[Callable, Callable]:
    """`__getattr__` and `__dir__` of a package: `homes` says in which of its modules a name is."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return get, lambda: [*vars(sys.modules[package]), *homes]
