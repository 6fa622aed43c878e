"""The part of a graph that some of its tensors need, and the operations that TensorFlow lacks."""

import importlib.util
import pathlib
import sys
from collections.abc import Iterable, Iterator

import tensorflow as tf
from google.protobuf.message import Message
from tensorflow.core.framework import graph_pb2

SENTENCEPIECE = "Sentencepiece"
LIBRARY = "python/ops/_sentencepiece_tokenizer.so"


def reachable_graph(graph: Message, tensors: Iterable[str]) -> Message:
    """Copy the nodes and functions that some tensors are computed by, without gradients.

    Args:
        graph: a GraphDef.
        tensors: names of tensors or operations in it, such as "text:0".

    Returns:
        A GraphDef.
    """
    nodes = {node.name: node for node in graph.node}
    names = _closure(map(_operation, tensors), lambda name: map(_operation, nodes[name].input))
    bodies = {function.signature.name: function.node_def for function in graph.library.function}
    kept = [node for node in graph.node if node.name in names]
    functions = _closure(_called(kept, bodies), lambda name: _called(bodies[name], bodies))
    return graph_pb2.GraphDef(
        versions=graph.versions,
        node=kept,
        library={
            "function": [one for one in graph.library.function if one.signature.name in functions]
        },
    )


def _operation(tensor: str) -> str:
    """The operation that gives a tensor, or that a control edge such as "^init" comes from."""
    return tensor.removeprefix("^").partition(":")[0]


def _called(nodes: Iterable[Message], functions: dict) -> Iterator[str]:
    """Names of the functions that nodes call or have as an attribute."""
    for node in nodes:
        if node.op in functions:
            yield node.op
        for value in node.attr.values():
            yield from (one.name for one in (value.func, *value.list.func) if one.name)


def _closure(first: Iterable[str], following) -> set[str]:
    """All names that some names lead to, themselves among them."""
    found = set()
    waiting = list(first)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(following(name))
    return found


def load_text_operations(graph: Message) -> None:
    """Register the operations of a graph that TensorFlow itself does not have.

    SentencePiece's lie in a library of their own. `import tensorflow_text` would register all, and
    import Keras (measured: 2 to 3 s).

    Args:
        graph: a GraphDef.
    """
    foreign = operations_in(graph) - set(dir(tf.raw_ops))
    if not foreign or "tensorflow_text" in sys.modules:
        return
    if all(name.startswith(SENTENCEPIECE) for name in foreign):
        [folder] = importlib.util.find_spec("tensorflow_text").submodule_search_locations
        tf.load_op_library(str(pathlib.Path(folder) / LIBRARY))
    else:
        import tensorflow_text  # noqa: F401


def operations_in(graph: Message) -> set[str]:
    """Names of all operations in a GraphDef and in its functions."""
    functions = graph.library.function
    nodes = [*graph.node, *(node for function in functions for node in function.node_def)]
    return {node.op for node in nodes} - {function.signature.name for function in functions}
