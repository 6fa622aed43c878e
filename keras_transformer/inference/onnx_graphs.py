"""The graphs of a translator or a language model, run by ONNX Runtime for the search of
`decoding.numpy_search`.
"""

import copy
import importlib
import os
import pathlib
from collections.abc import Callable

import numpy as np

from keras_transformer.runs.model_path import ONNX

ENCODER = "encoder.onnx"
DECODER = ONNX
LOGITS = ("logits", "tokens", "log_normalizer")


class OnnxModel:
    """The graphs of a folder, called as `decoding.numpy_search` calls a model."""

    def __init__(self, folder: pathlib.Path):
        runtime = _runtime()
        self._decoder = _session(runtime, folder / DECODER)
        self.has_encoder = (folder / ENCODER).exists()
        if self.has_encoder:
            self._encoder = _session(runtime, folder / ENCODER)
        self._stop = None
        self._inputs = {one.name for one in self._decoder.get_inputs()}
        inputs = [one for one in self._decoder.get_inputs() if one.name.startswith("state_")]
        self._states = sorted(inputs, key=lambda one: int(one.name.removeprefix("state_")))
        self._outputs = [*LOGITS, *(f"next_{number}" for number in range(len(self._states)))]

    def stopped_by(self, stop: Callable[[], None]) -> "OnnxModel":
        """The same graphs, which call a function before each step; it may raise."""
        other = copy.copy(self)
        other._stop = stop
        return other

    def encode(self, ids: np.ndarray) -> list[np.ndarray]:
        """What the steps need of sources (B, S)."""
        if not self.has_encoder:
            return []
        names = [one.name for one in self._encoder.get_outputs()]
        names.sort(key=lambda name: int(name.removeprefix("source_")))
        return self._encoder.run(names, {"ids": ids})

    def start(self, rows: int) -> list[np.ndarray]:
        """Zeros; an axis that grows, whose size the graph leaves open, begins with none."""
        shapes = [(rows, *map(_size, one.shape[1:])) for one in self._states]
        return [np.zeros(shape, np.float32) for shape in shapes]

    def step(self, ids, position, rows, count, bias, factor, state, source):
        """One token for each hypothesis: see `decoding.numpy_search`."""
        if self._stop:
            self._stop()
        feeds = {
            "ids": ids,
            "position": position,
            "rows": rows,
            "count": count,
            "bias": bias,
            "factor": factor,
            **{f"source_{number}": one for number, one in enumerate(source)},
            **{one.name: array for one, array in zip(self._states, state, strict=True)},
        }
        # A graph has no input that its architecture does not read, such as the position.
        feeds = {name: array for name, array in feeds.items() if name in self._inputs}
        logits, tokens, log_normalizer, *state = self._decoder.run(self._outputs, feeds)
        return logits, tokens, log_normalizer, state


def _runtime():
    # It would write a file and report to its maker from the import on.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        raise ValueError("an ONNX model needs ONNX Runtime: pip install onnxruntime.") from error


def _session(runtime, path):
    options = runtime.SessionOptions()
    # The operations of a step are too small to share. Threads translate a batch each.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _size(size):
    return size if isinstance(size, int) else 0
