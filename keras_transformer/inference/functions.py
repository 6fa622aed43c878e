"""A trained model as functions by name, arrays in, arrays out: of a run or of a SavedModel."""

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
    """Functions by name; each takes arrays (B, ...) by name and gives such. With the model's name,
    for errors, and what `model.json` says besides its training: labels, classes, the mask.
    """

    name: str
    facts: Mapping[str, Any]


class LiveFunctions(Functions):
    """Those of a `ServedModule` in memory."""

    def __init__(self, module: tf.Module):
        functions = module.functions()
        super().__init__({name: functools.partial(_called, one) for name, one in functions.items()})
        self.name = "the model"
        self.facts = module.facts()


def _called(function, /, **inputs):
    return {output: tensor.numpy() for output, tensor in function(**inputs).items()}


class SavedFunctions(Functions):
    """The signatures of a SavedModel, each loaded when it is first asked for; inputs that have a
    default may be left out. Every `Signature` stands by name in `signatures`, the vocabularies in
    `sentencepiece_models`. A damaged one is a ValueError.
    """

    def __init__(self, version: pathlib.Path, facts: Mapping[str, Any]):
        try:
            meta_graph = read_meta_graph(version)
        except (OSError, ValueError) as error:
            raise damaged(version, error) from error
        # A SignatureDef would keep the graph that it was read with in memory.
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
    """Those of the SavedModel that a path leads to."""
    return SavedFunctions(model.version, model.describe())
