"""Import benchmarks freshly: different benchmarks define flags of the same names."""

import importlib
import sys

import pytest
from absl import flags


@pytest.fixture
def benchmark_of():
    """A function from the name of a benchmark and arguments to its module, freshly imported, with
    only the flags of its imports.
    """
    state = flags.FLAGS.__dict__
    saved = dict(state)
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
        # `from benchmarks.paper import x` reads this attribute first.
        parent, _, own = name.rpartition(".")
        vars(sys.modules.get(parent, sys)).pop(own, None)
    state.clear()
    state.update(saved)
