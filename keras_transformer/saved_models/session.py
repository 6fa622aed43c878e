"""One SavedModel in memory, whose signatures are called with arrays.

Each signature is a function of TensorFlow's eager runtime, because a run of such a function can be
cancelled from another thread, and a session's cannot. `tf.saved_model.load` makes such functions
too, but it takes longer, and it leaks the weights of a dropped model (measured: 100 MB for each of
6 versions of a model with 7.5M parameters; this class leaked nothing).
"""

import gc
import itertools
import logging
import os
import pathlib
import threading
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError, Message
from tensorflow.core.protobuf import config_pb2, saved_model_pb2
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

# TensorFlow's Python has no public name for the cancellation of a function.
from tensorflow.python.eager import context, execute
from tensorflow.python.eager.cancellation import CancellationManager

from keras_transformer.saved_models.loaded_graph import (
    Parts,
    load_text_operations,
    make_cancellable,
    rename,
    sentencepiece_models,
)
from keras_transformer.saved_models.signature import DEFAULT_SIGNATURE, Signature, TensorSpec
from keras_transformer.tensorflow_errors import reason_of
from pipelines.vocabularies.model_proto import is_byte_level

# Our functions are saved without gradients; TensorFlow warns of each when it loads them.
logging.getLogger("absl").addFilter(lambda log: "unsaved custom gradients" not in str(log.msg))
# The collection in which a SavedModel names the operation that fills its tables.
INITIALIZER = "saved_model_main_op"
_NUMBERS = itertools.count()
# Folding constants takes a third of the first call's time, and gains nothing later.
REWRITES = RewriterConfig(constant_folding=RewriterConfig.OFF)
CONFIG = config_pb2.ConfigProto(
    graph_options=config_pb2.GraphOptions(rewrite_options=REWRITES)
).SerializeToString()


class SavedModel:
    """A loaded SavedModel: every SignatureDef of its folder and each loaded `Signature`, by name,
    and its vocabularies. Signatures that `only` does not name are not loaded, and cost no time. A
    damaged SavedModel raises an OpError, an OSError or a ValueError.
    """

    def __init__(self, folder: str | os.PathLike, only: tuple[str, ...] | None = None):
        self.folder = pathlib.Path(folder)
        meta_graph = read_meta_graph(folder)
        self.definitions = dict(meta_graph.signature_def)
        every = signatures_of(meta_graph)
        self.signatures = {name: every[name] for name in every if only is None or name in only}
        models = sentencepiece_models(meta_graph.graph_def)
        self.sentencepiece_models = [model for model in models if not is_byte_level(model)]
        self._running = 0
        self._ended = threading.Condition()
        self._loaded = _Functions(meta_graph, self.signatures, self.folder)

    def run(
        self,
        name: str,
        inputs: dict[str, np.ndarray],
        cancellation: CancellationManager | None = None,
    ) -> dict[str, np.ndarray]:
        """Call a signature, from any thread, with an array for each of its inputs. Return an array
        for each of its outputs. `cancellation.start_cancel`, called from another thread, ends the
        run between two steps of a loop, or before the next large operation.
        """
        signature = self.signatures[name]
        tensors = [tf.constant(inputs[key], spec.dtype) for key, spec in signature.inputs.items()]
        with self._ended:
            self._running += 1
        try:
            outputs = execute.execute_with_cancellation(
                self._loaded.names[name],
                len(signature.outputs),
                tensors,
                ("executor_type", "", "config_proto", CONFIG),
                context.context(),
                cancellation or CancellationManager(),
            )
        finally:
            with self._ended:
                self._running -= 1
                self._ended.notify_all()
        return dict(zip(signature.outputs, map(np.asarray, outputs), strict=True))

    def warm_up(self) -> None:
        """Translate an empty text once: TensorFlow optimizes the graph at the first call."""
        signature = self.signatures.get(DEFAULT_SIGNATURE)
        if not signature:
            return
        specs = {name: signature.inputs[name] for name in signature.required}
        if not all(spec.is_text and spec.shape is not None for spec in specs.values()):
            return
        texts = {
            name: np.full([1 if size is None else size for size in spec.shape], b"", object)
            for name, spec in specs.items()
        }
        try:
            # Not `self.run`, whose errors the server words for requests.
            SavedModel.run(self, DEFAULT_SIGNATURE, signature.defaults | texts)
        except tf.errors.OpError:
            # A model without our card may refuse an empty text.
            if (self.folder / "model.json").exists():
                raise

    def close(self) -> None:
        """Free the memory when all runs have ended."""
        with self._ended:
            self._ended.wait_for(lambda: not self._running)
        self._loaded.remove()


class _Functions:
    """The functions of some signatures, by name, with the variables and tables that they share."""

    def __init__(self, meta_graph, signatures, folder):
        saver = meta_graph.saver_def
        initializer = list(meta_graph.collection_def[INITIALIZER].node_list.value)
        assets = {
            asset.tensor_info.name: str(folder / "assets" / asset.filename)
            for asset in meta_graph.asset_file_def
        }
        ends = {
            name: [[spec.name for spec in side.values()] for side in (each.inputs, each.outputs)]
            for name, each in signatures.items()
        }
        used = [name for inputs, outputs in ends.values() for name in (*inputs, *outputs)]
        used += [saver.filename_tensor_name, saver.restore_op_name, *initializer, *assets]
        graph = Parts(meta_graph.graph_def).of(used)
        load_text_operations(graph)
        make_cancellable(graph)
        # Another version in memory has functions and variables of the same names.
        rename(graph, f"saved_model_{next(_NUMBERS)}_")
        self._graph = graph
        self._parts = Parts(graph)
        self._wrapped = []
        self._handles = [f"{node.name}:0" for node in graph.node if "shared_name" in node.attr]
        try:
            weights = tf.constant(str(folder / "variables" / "variables"))
            self._function([saver.filename_tensor_name], [saver.restore_op_name])(weights)
            if initializer:
                self._function([*assets], initializer)(*map(tf.constant, assets.values()))
            self.names = {
                name: self._function(*ends[name]).inference_fn.name.decode() for name in signatures
            }
        except Exception:
            self.remove()
            raise

    def remove(self) -> None:
        """Free the memory."""
        for handle in self._function([], self._handles)():
            tf.raw_ops.DestroyResourceOp(resource=handle)
        self._wrapped.clear()
        # Functions and their graphs refer to each other: only the garbage collector frees them.
        gc.collect()
        for function in self._graph.library.function:
            while context.context().has_function(function.signature.name):
                context.context().remove_function(function.signature.name)

    def _function(self, inputs: list[str], outputs: list[str]) -> Callable:
        """Wrap a function of tensors, by the names of tensors or operations in the graph."""
        graph = self._parts.of([*inputs, *outputs])
        placeholders = {f"{node.name}:0": node.attr for node in graph.node}
        attributes = [placeholders[name] for name in inputs]
        # An unknown rank is not written down.
        specs = [
            tf.TensorSpec(each["shape"].shape if "shape" in each else None, each["dtype"].type)
            for each in attributes
        ]

        def body(*tensors):
            imported = tf.import_graph_def(
                graph, dict(zip(inputs, tensors, strict=True)), outputs, name=""
            )
            operations = [output for output in imported if isinstance(output, tf.Operation)]
            with tf.control_dependencies(operations):
                return [tf.constant(0) if output in operations else output for output in imported]

        self._wrapped.append(tf.compat.v1.wrap_function(body, specs))
        return self._wrapped[-1]


def read_meta_graph(folder: str | os.PathLike) -> Message:
    """Read the MetaGraphDef of a SavedModel that is meant for serving."""
    path = pathlib.Path(folder) / "saved_model.pb"
    try:
        saved_model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    except DecodeError as error:
        raise ValueError(f"{path} cannot be parsed: {error}") from error
    for meta_graph in saved_model.meta_graphs:
        if tf.saved_model.SERVING in meta_graph.meta_info_def.tags:
            return meta_graph
    raise ValueError(f"{path} holds no graph with the tag {tf.saved_model.SERVING!r}.")


def signatures_of(meta_graph: Message) -> dict[str, Signature]:
    """Return the signatures that have inputs, by name."""
    return {
        name: Signature(
            inputs=_specs(entry.inputs),
            outputs=_specs(entry.outputs),
            defaults={key: tf.make_ndarray(value) for key, value in sorted(entry.defaults.items())},
        )
        for name, entry in meta_graph.signature_def.items()
        if entry.inputs
    }


def _specs(infos):
    """Return specs in the order of their names, as TF Serving lists them."""
    return {name: _spec(info) for name, info in sorted(infos.items())}


def _spec(info):
    shape = info.tensor_shape
    sizes = tuple(None if dimension.size < 0 else dimension.size for dimension in shape.dim)
    dtype = np.dtype(tf.as_dtype(info.dtype).as_numpy_dtype)
    return TensorSpec(info.name, dtype, None if shape.unknown_rank else sizes)


def reload(version: str | os.PathLike) -> tf.Module:
    """Load a SavedModel with all functions and variables that its module had."""
    import tensorflow_text  # noqa: F401  the tokenizer needs these operations

    try:
        return tf.saved_model.load(str(version))
    except (OSError, ValueError, KeyError, tf.errors.OpError) as error:
        raise damaged(version, error) from error


def damaged(version: str | os.PathLike, error: Exception) -> ValueError:
    """Return the error that says that a SavedModel cannot be loaded, and why."""
    return ValueError(f"{version} is no SavedModel that can be loaded: {reason_of(error)}")
