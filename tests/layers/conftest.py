"""Random inputs and random weights for tests of layers."""

import functools

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def random(rng):
    """Standard normal float32 arrays of a shape."""
    return lambda *shape: rng.normal(size=shape).astype("float32")


@pytest.fixture(scope="session")
def shaken():
    """Builds a layer on inputs and shakes all its weights: a gain of 1 or a bias of 0 may hide a
    mistake.
    """

    def shake(rng, layer, *inputs):
        layer(*inputs)
        layer.set_weights([rng.normal(w, 0.1) for w in layer.get_weights()])
        return layer

    return shake


@pytest.fixture
def randomized(shaken, rng):
    """`shaken` with random numbers of the test's own."""
    return functools.partial(shaken, rng)


@pytest.fixture
def parts():
    """The weights of an encoder or decoder layer by the oracle's names."""

    def by_name(layer):
        names = (
            *("self_attention", "self_attention_norm", "cross_attention", "cross_attention_norm"),
            *("feed_forward", "feed_forward_norm"),
        )
        return {name: getattr(layer, name).get_weights() for name in names if hasattr(layer, name)}

    return by_name
