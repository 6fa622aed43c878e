"""One SavedModel in memory: its signatures, and what they give for arrays.

It runs in a session, as TF Serving runs it. `tf.saved_model.load` takes longer, and keeps the
model's weights after it is dropped (measured: 100 MB for each of 6 versions of a model with 7.5M
parameters; a session kept nothing).
"""

import contextlib
import gc
import logging
import os
import pathlib
import threading

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError, Message
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from keras_transformer.saved_models.loaded_graph import load_text_operations, reachable_graph
from keras_transformer.saved_models.signature import Signature, TensorSpec, signature_of
from keras_transformer.tensorflow_errors import reason_of

__all__ = ["DEFAULT_SIGNATURE", "SavedModel", "Signature", "TensorSpec"]
__all__ += ["damaged", "read_meta_graph", "reason_of", "reload"]

DEFAULT_SIGNATURE = "serving_default"
# Where a SavedModel names the operation that fills its tables.
INITIALIZER = "saved_model_main_op"


class SavedModel:
    """A loaded SavedModel.

    Args:
        folder: where `saved_model.pb` lies.
        only: names of the signatures to load, of which the others cost no time; by default all.
            Names that the SavedModel lacks are ignored.
        threads_per_operation: how many cores one operation may use; 0: all.

    Attributes:
        folder: where it lies.
        definitions: every SignatureDef by name, as it lies in the folder.
        signatures: each loaded `Signature` by name.

    Raises:
        tf.errors.OpError, OSError, ValueError: if it is damaged.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        only: tuple[str, ...] | None = None,
        threads_per_operation: int = 1,
    ):
        self.folder = pathlib.Path(folder)
        meta_graph = read_meta_graph(folder)
        self.definitions = dict(meta_graph.signature_def)
        self.signatures = {
            name: signature_of(one)
            for name, one in self.definitions.items()
            if one.inputs and (only is None or name in only)
        }
        self._session = _session(threads_per_operation)
        try:
            with self._session.graph.as_default(), _without_deprecations():
                _restore(self._session, meta_graph, self.signatures, pathlib.Path(folder))
        except Exception:
            self._session.close()
            raise
        self._running = 0
        self._ended = threading.Condition()
        self._functions = {
            name: self._session.make_callable(
                [spec.name for spec in signature.outputs.values()],
                [spec.name for spec in signature.inputs.values()],
                accept_options=True,
            )
            for name, signature in self.signatures.items()
        }

    def run(
        self, name: str, inputs: dict[str, np.ndarray], milliseconds: int = 0
    ) -> dict[str, np.ndarray]:
        """Call a signature, from any thread.

        Args:
            name: the signature's.
            inputs: an array for each of its inputs.
            milliseconds: most that it may take; then it ends between two operations, also inside a
                loop. 0: any time.

        Returns:
            An array for each of its outputs.

        Raises:
            tf.errors.DeadlineExceededError: if its time is over.
            tf.errors.OpError: if TensorFlow refuses the inputs, or fails.
        """
        signature = self.signatures[name]
        arrays = (inputs[one] for one in signature.inputs)
        options = tf.compat.v1.RunOptions(timeout_in_ms=milliseconds)
        with self._ended:
            self._running += 1
        try:
            outputs = self._functions[name](*arrays, options=options)
        finally:
            with self._ended:
                self._running -= 1
                self._ended.notify_all()
        return dict(zip(signature.outputs, outputs, strict=True))

    def warm_up(self) -> None:
        """Translate an empty text once: TensorFlow optimizes the graph at the first call."""
        signature = self.signatures.get(DEFAULT_SIGNATURE)
        if signature and all(
            signature.inputs[name].dtype == tf.string for name in signature.required
        ):
            text = np.array([b""], dtype=object)
            self.run(
                DEFAULT_SIGNATURE, {**signature.defaults, **dict.fromkeys(signature.required, text)}
            )

    def close(self) -> None:
        """Give the memory back, when all runs have ended."""
        with self._ended:
            self._ended.wait_for(lambda: not self._running)
        self._functions.clear()
        self._session.close()
        # Session and graph refer to each other, and Python would find that out much later.
        del self._session
        gc.collect()


def read_meta_graph(folder: str | os.PathLike) -> Message:
    """Read the MetaGraphDef that a SavedModel serves.

    Raises:
        OSError: if there is no file.
        ValueError: if the file is damaged, or holds nothing to serve.
    """
    path = pathlib.Path(folder) / "saved_model.pb"
    try:
        saved_model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    except DecodeError as error:
        raise ValueError(f"{path} cannot be parsed: {error}") from error
    for meta_graph in saved_model.meta_graphs:
        if tf.saved_model.SERVING in meta_graph.meta_info_def.tags:
            return meta_graph
    raise ValueError(f"{path} holds no graph with the tag {tf.saved_model.SERVING!r}.")


def _session(threads_per_operation: int) -> tf.compat.v1.Session:
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads_per_operation)
    # Both would fold constants at the first call, half of its time (measured: 1.2 s instead of 2.3
    # s, and the same time for each later call).
    config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    config.graph_options.rewrite_options.constant_folding = RewriterConfig.OFF
    # Two versions are in memory while one replaces the other.
    config.gpu_options.allow_growth = True
    return tf.compat.v1.Session(graph=tf.Graph(), config=config)


def _restore(session, meta_graph, signatures, folder):
    """Import what the signatures need into the session's graph, and give it its values."""
    saver = meta_graph.saver_def
    initializer = list(meta_graph.collection_def[INITIALIZER].node_list.value)
    assets = {
        asset.tensor_info.name: str(folder / "assets" / asset.filename)
        for asset in meta_graph.asset_file_def
    }
    used = [
        spec.name
        for signature in signatures.values()
        for spec in (*signature.inputs.values(), *signature.outputs.values())
    ]
    used += [saver.filename_tensor_name, saver.restore_op_name, *initializer, *assets]
    graph = reachable_graph(meta_graph.graph_def, used)
    load_text_operations(graph)
    tf.import_graph_def(graph, name="")
    weights = str(folder / "variables" / "variables")
    session.run(saver.restore_op_name, {saver.filename_tensor_name: weights})
    session.run(initializer, assets)


@contextlib.contextmanager
def _without_deprecations():
    """TensorFlow tells users of sessions not to use them."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def reload(version: str | os.PathLike) -> tf.Module:
    """Load a SavedModel with all functions and variables that its module had.

    Raises:
        ValueError: if it is damaged.
    """
    import tensorflow_text  # noqa: F401  its tokenizer needs these operations

    try:
        return tf.saved_model.load(str(version))
    except (OSError, ValueError, KeyError, tf.errors.OpError) as error:
        raise damaged(version, error) from error


def damaged(version: str | os.PathLike, error: Exception) -> ValueError:
    """The error that says that a SavedModel cannot be loaded, and why."""
    return ValueError(f"{version} is no SavedModel that can be loaded: {reason_of(error)}")
