"""Benchmarks are programs, each with flags of its own under names that others have too."""

import importlib
import sys

import pytest
from absl import flags


@pytest.fixture
def benchmark_of():
    """A function from the name of a benchmark and arguments to its module, freshly imported, with
    no flags but those of what it imports.
    """
    state = flags.FLAGS.__dict__
    kept = dict(state)
    state.clear()
    state.update(flags.FlagValues().__dict__)
    before = {name for name in sys.modules if name.startswith("benchmarks.")}

    def load(name, *arguments):
        module = importlib.import_module(f"benchmarks.{name}")
        flags.FLAGS(["benchmark", *arguments])
        return module

    yield load
    for name in {name for name in sys.modules if name.startswith("benchmarks.")} - before:
        del sys.modules[name]
        # `from benchmarks.paper import x` looks here first.
        parent, _, own = name.rpartition(".")
        vars(sys.modules.get(parent, sys)).pop(own, None)
    state.clear()
    state.update(kept)
