"""A trained model as functions by name, arrays in, arrays out: of a run or of a SavedModel."""

import pathlib
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import Message

from keras_transformer.runs.model_path import ModelPath
from keras_transformer.saved_models.session import (
    SavedModel,
    damaged,
    read_meta_graph,
    signature_of,
)

Function = Callable[..., dict[str, np.ndarray]]


class Functions(Mapping[str, Function]):
    """Functions by name; each takes arrays (B, ...) by name and gives such.

    Attributes:
        name: of the model, for errors.
        facts: what `model.json` says of it besides its training: labels, classes, the mask.
    """

    name: str
    facts: Mapping[str, Any]


class LiveFunctions(Functions):
    """Those of a `ServedModule` in memory."""

    def __init__(self, module: tf.Module):
        self.name = "the model"
        self.facts = module.facts()
        self._functions = module.functions()

    def __getitem__(self, name: str) -> Function:
        function = self._functions[name]
        return lambda **inputs: {
            output: tensor.numpy() for output, tensor in function(**inputs).items()
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


class SavedFunctions(Functions):
    """The signatures of a SavedModel, each loaded when it is first asked for. Inputs
    that have a default may be left out.

    Attributes:
        signatures: every `Signature` by name.
    """

    def __init__(
        self, version: pathlib.Path, definitions: Mapping[str, Message], facts: Mapping[str, Any]
    ):
        self.name = str(version)
        self.facts = facts
        # A SignatureDef would keep the graph that it was read with in memory.
        self.signatures = {
            name: signature_of(one) for name, one in definitions.items() if one.inputs
        }
        self._version = version
        self._loaded: dict[str, SavedModel] = {}
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Function:
        if name not in self.signatures:
            raise KeyError(name)
        return lambda **inputs: self._run(name, inputs)

    def __iter__(self) -> Iterator[str]:
        return iter(self.signatures)

    def __len__(self) -> int:
        return len(self.signatures)

    def _run(self, name, inputs):
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
    """Those of the SavedModel that a path leads to; a ValueError says that it is damaged."""
    definitions = meta_graph_of(model.version).signature_def
    return SavedFunctions(model.version, definitions, model.describe())


def meta_graph_of(version: pathlib.Path) -> Message:
    """The MetaGraphDef of a SavedModel; a ValueError says that it is damaged."""
    try:
        return read_meta_graph(version)
    except (OSError, ValueError) as error:
        raise damaged(version, error) from error
