"""PyPI's dead `keras-transformer` has our import name: a clash is told."""

import importlib.metadata

import pytest

import keras_transformer


def test_the_dead_package_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0.40.0")
    with pytest.raises(ImportError, match="pip uninstall keras-transformer"):
        keras_transformer._refuse_the_dead_namesake()


def test_without_it_nothing_happens():
    assert keras_transformer._refuse_the_dead_namesake() is None
