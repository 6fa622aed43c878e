"""A compiled model, and a stopwatch."""

import types

import keras
import pytest


@pytest.fixture
def model():
    """A model of two weights."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, name="dense")])
    model.compile(optimizer=keras.optimizers.SGD(0.001), loss="mse", run_eagerly=True)
    return model


@pytest.fixture
def stopwatch():
    """A stopwatch that is set by hand."""
    return types.SimpleNamespace(seconds=0.0)
