"""A trained model, live or exported, as named functions from arrays to arrays."""

import functools
import pathlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from keras_transformer.runs.model_path import ModelPath
from keras_transformer.saved_models.loaded_graph import sentencepiece_models
from keras_transformer.saved_models.session import (
    SavedModel,
    damaged,
    read_meta_graph,
    signatures_of,
)

Function = Callable[..., dict[str, np.ndarray]]


class Functions(dict[str, Function]):
    """Functions by name, from named arrays (B, ...) to named arrays (B, ...). `name` is the model's
    in errors; `facts` are the fields of `model.json` such as its labels, its classes and its mask.
    """

    name: str
    facts: Mapping[str, Any]


class LiveFunctions(Functions):
    """The functions of a `ServedModule` in memory."""

    def __init__(self, module: tf.Module):
        graphs = module.functions()
        super().__init__({name: functools.partial(_arrays, run) for name, run in graphs.items()})
        self.name = "the model"
        self.facts = module.facts()


def _arrays(function, /, **inputs):
    return {output: tensor.numpy() for output, tensor in function(**inputs).items()}


class SavedFunctions(Functions):
    """The signatures of a SavedModel, each loaded at its first call; inputs that have a default may
    be left out. `signatures` has their types, `sentencepiece_models` the vocabularies. A damaged
    SavedModel raises ValueError.
    """

    def __init__(self, version: pathlib.Path, facts: Mapping[str, Any]):
        try:
            meta_graph = read_meta_graph(version)
        except (OSError, ValueError) as error:
            raise damaged(version, error) from error
        # Not SignatureDefs: one would keep the graph that it was read with in memory.
        self.signatures = signatures_of(meta_graph)
        super().__init__({name: functools.partial(self._run, name) for name in self.signatures})
        self.name = str(version)
        self.facts = facts
        self.sentencepiece_models = sentencepiece_models(meta_graph.graph_def)
        self._version = version
        self._loaded: dict[str, SavedModel] = {}
        self._lock = threading.Lock()

    def _run(self, name, /, **inputs):
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = self._load(name)
            model = self._loaded[name]
        return model.run(name, self.signatures[name].defaults | inputs)

    def _load(self, name):
        try:
            return SavedModel(self._version, (name,))
        except (OSError, ValueError, tf.errors.OpError) as error:
            raise damaged(self._version, error) from error


def saved_functions(model: ModelPath) -> SavedFunctions:
    """Return the functions of the SavedModel at a path."""
    return SavedFunctions(model.version, model.describe())
