"""Random inputs and random weights for tests of layers."""

import functools

import numpy as np
import pytest
from small_model import shaken


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def random(rng):
    """Standard normal float32 arrays of a shape."""
    return lambda *shape: rng.normal(size=shape).astype("float32")


@pytest.fixture
def randomized(rng):
    """`shaken` with random numbers of the test's own."""
    return functools.partial(shaken, rng)
