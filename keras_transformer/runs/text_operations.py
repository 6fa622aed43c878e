"""TensorFlow Text's operations, which a SavedModel's tokenizer needs."""

import importlib.util
import pathlib
import sys

import tensorflow as tf
from google.protobuf.message import Message

SENTENCEPIECE = "Sentencepiece"
LIBRARY = "python/ops/_sentencepiece_tokenizer.so"


def load_text_operations(graph: Message) -> None:
    """Register the operations of a graph that TensorFlow itself does not have.

    SentencePiece's lie in a library of their own. `import tensorflow_text` would register all, and
    import Keras (measured: 2 to 3 s).

    Args:
        graph: a GraphDef.
    """
    foreign = _operations(graph) - set(dir(tf.raw_ops))
    if not foreign or "tensorflow_text" in sys.modules:
        return
    if all(name.startswith(SENTENCEPIECE) for name in foreign):
        [folder] = importlib.util.find_spec("tensorflow_text").submodule_search_locations
        tf.load_op_library(str(pathlib.Path(folder) / LIBRARY))
    else:
        import tensorflow_text  # noqa: F401


def _operations(graph):
    """Names of all operations in a GraphDef and in its functions."""
    functions = graph.library.function
    nodes = [*graph.node, *(node for function in functions for node in function.node_def)]
    return {node.op for node in nodes} - {function.signature.name for function in functions}
