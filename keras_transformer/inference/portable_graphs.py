"""The graphs of a model, run by ONNX Runtime or LiteRT for `decoding.numpy_search`."""

import contextlib
import copy
import importlib
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from keras_transformer.saved_models.versions import DECODERS
from keras_transformer.tensorflow_errors import silence
from pipelines.special_ids import BOS, EOS, PAD

# The outputs of a step and of a block, besides their state.
LIKELIEST = ("logs", "tokens")
OF_BLOCKS = (*LIKELIEST, "count", "proposed")
# The name of the graph that decodes blocks.
BLOCKS = "blocks"


class OnnxGraph:
    """A graph that ONNX Runtime runs.

    Attributes:
        inputs: the shape of each input by name, 0 where the graph leaves a size open.
        outputs: names of its outputs.
    """

    runtime = "ONNX Runtime"
    platform = "onnxruntime_onnx"

    def __init__(self, path: str):
        # Otherwise importing it would write a file, and report to its maker.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        package = _imported("onnxruntime", self.runtime)
        options = package.SessionOptions()
        # A step's operations are too small for several threads. `Translator` runs a batch in each.
        options.intra_op_num_threads = 1
        with _whole(path):
            self._session = package.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.inputs = {
            tensor.name: [size if isinstance(size, int) else 0 for size in tensor.shape]
            for tensor in self._session.get_inputs()
        }
        self.outputs = [tensor.name for tensor in self._session.get_outputs()]

    def __call__(self, names: Sequence[str], feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the named outputs for inputs by name."""
        return self._session.run(names, feeds)


class LiteRtGraph:
    """A graph that LiteRT runs; attributes and call as of `OnnxGraph`."""

    runtime = "LiteRT"
    platform = "litert_tflite"

    def __init__(self, path: str):
        self._package = _imported("ai_edge_litert.interpreter", self.runtime)
        self._path = path
        # An interpreter holds the tensors of one call, so that each thread needs its own.
        with _whole(path):
            self._idle = [self._interpreter()]
        details = self._idle[0].get_input_details()
        self.inputs = {
            name: np.maximum(spec["shape_signature"], 0).tolist() for name, spec in details.items()
        }
        self.outputs = [*self._idle[0].get_output_details()]

    def __call__(self, names, feeds):
        try:
            run = self._idle.pop()
        except IndexError:
            run = self._interpreter()
        outputs = run(**feeds)
        self._idle.append(run)
        return [outputs[name] for name in names]

    def _interpreter(self):
        interpreter = self._package.Interpreter(model_path=self._path, num_threads=1)
        with silence():
            # This prints which delegate it uses.
            interpreter.allocate_tensors()
        return interpreter.get_signature_runner()


RUNTIMES = {"onnx": OnnxGraph, "litert": LiteRtGraph}


class GraphModel:
    """The graphs of a folder as a model for `decoding.numpy_search`.

    Attributes:
        block_size: k of a model that decodes blocks, else 1.
        has_encoder: whether there is a source.
        platform: the Open Inference Protocol's name for its kind of model.
    """

    def __init__(self, folder: pathlib.Path, form: str):
        decoder = folder / DECODERS[form]
        self._decoder = _graph(form, decoder, LIKELIEST)
        self.platform = self._decoder.platform
        self.has_encoder = bool(_numbered("source", self._decoder.inputs))
        encoder = decoder.with_stem("encoder")
        self._encoder = _graph(form, encoder, ["source_0"]) if self.has_encoder else None
        self._sources = _numbered("source", self._encoder.outputs) if self._encoder else []
        self._stop = None
        self._states = _numbered("state", self._decoder.inputs)
        self._next = _numbered("next", self._decoder.outputs)
        blocks = decoder.with_stem(BLOCKS)
        self._blocks = _graph(form, blocks, OF_BLOCKS) if blocks.exists() else None
        self.block_size = self._blocks.inputs["ids"][1] if self._blocks else 1

    def stopped_by(self, stop: Callable[[], None]) -> "GraphModel":
        """Return a copy that calls a function, which may raise, before each step."""
        twin = copy.copy(self)
        twin._stop = stop
        return twin

    def encode(self, sources: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """Encode sources, ids without EOS, for the steps."""
        if not self._encoder or not sources:
            return []
        ids = np.full((len(sources), max(map(len, sources)) + 1), PAD, np.int32)
        for row, source in zip(ids, sources, strict=True):
            row[: len(source) + 1] = [*source, EOS]
        return self._encoder(self._sources, {"ids": ids})

    def start(self, rows: int) -> list[np.ndarray]:
        """Return states of zeros; an axis that grows, left open by the graph, is empty."""
        shapes = [(rows, *self._decoder.inputs[name][1:]) for name in self._states]
        return [np.zeros(shape, np.float32) for shape in shapes]

    def step(self, ids, position, rows, count, bias, factor, state, source):
        """Decode a token for each hypothesis: see `decoding.numpy_search`."""
        inputs = {"rows": rows, "count": count}
        inputs |= {"ids": ids, "position": position, "bias": bias, "factor": factor}
        return self._run(self._decoder, LIKELIEST, inputs, state, source)

    def block(self, ids, position, bias, factor, state, source):
        """Decode a block of one sentence: see `decoding.numpy_blocks`."""
        inputs = {"ids": ids, "position": position, "bias": bias, "factor": factor}
        return self._run(self._blocks, OF_BLOCKS, inputs, state, source)

    def _run(self, graph, names, inputs, state, source):
        if self._stop:
            self._stop()
        sources = zip(self._sources, source, strict=True)
        feeds = {**inputs, **dict(sources), **dict(zip(self._states, state, strict=True))}
        # A graph lacks the inputs that its architecture does not read, such as the position.
        feeds = {name: array for name, array in feeds.items() if name in graph.inputs}
        outputs = graph([*names, *self._next], feeds)
        return *outputs[: len(names)], outputs[len(names) :]

    def last_step(self, source, ids, size):
        """Return log P of all tokens after a sentence's ids, best first, and the tokens, (V,)."""
        source = self.encode([source])
        state = self.start(1)
        bias_and_factor = np.zeros((1, size), np.float32), np.ones((1, 1), np.float32)
        for position, newest in enumerate((BOS, *ids)):
            count = size if position == len(ids) else 1
            integers = (np.array(value, np.int32) for value in ([[newest]], position, [0], count))
            logs, tokens, state = self.step(*integers, *bias_and_factor, state, source)
        return logs[0], tokens[0]


def _graph(form, path, outputs):
    """Load a graph of a folder, and require some outputs."""
    # Runtimes take paths in UTF-8 under any locale.
    graph = RUNTIMES[form](os.fsencode(path).decode("utf-8"))
    if missing := {*outputs} - {*graph.outputs}:
        raise ValueError(
            f"{path} is another graph: it has no output {min(missing)}. Export the run again."
        )
    return graph


@contextlib.contextmanager
def _whole(path):
    """Turn each runtime's own errors about a file into a ValueError."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"{path} is missing or damaged ({error}). Export the run again."
        ) from error


def _imported(module, runtime):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("_", "-")
        raise ValueError(
            f"a model of this format needs {runtime}: pip install {package}."
        ) from error


def _numbered(name, names):
    """Return the names that are `name` and a number, such as state_0, sorted by the number."""
    numbered = [full for full in names if full.startswith(f"{name}_")]
    return sorted(numbered, key=lambda full: int(full.removeprefix(f"{name}_")))
