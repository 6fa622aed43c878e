"""Preparation of a SavedModel's graph before it runs: it is cut down to what some tensors need, its
names become unique, and its large operations can be cancelled.
"""

import functools
import importlib.util
import pathlib
import sys
from collections.abc import Collection, Iterable, Iterator

import tensorflow as tf
from google.protobuf.message import Message
from tensorflow.core.framework import graph_pb2

# Of attention, and convolutions in its place: a run can be cancelled before each.
LARGE = ("Softmax", "BatchMatMulV2", "Conv2D")
LOOPS = ("While", "StatelessWhile")
SENTENCEPIECE = "Sentencepiece"
LIBRARY = "python/ops/_sentencepiece_tokenizer.so"


class Parts:
    """Parts of a GraphDef: copies of the nodes and functions that compute some tensors."""

    def __init__(self, graph: Message):
        self._graph = graph
        self._nodes = {node.name: node for node in graph.node}
        bodies = {function.signature.name: function.node_def for function in graph.library.function}
        self._functions = bodies.keys()
        # Each function is read once, for the parts of a model share most of them.
        self._called_by = functools.cache(lambda name: [*_called(bodies[name], bodies)])

    def of(self, tensors: Iterable[str]) -> Message:
        names = _closure(
            map(_operation, tensors), lambda name: map(_operation, self._nodes[name].input)
        )
        nodes = [node for node in self._graph.node if node.name in names]
        called = _closure(_called(nodes, self._functions), self._called_by)
        library = self._graph.library.function
        functions = [function for function in library if function.signature.name in called]
        return graph_pb2.GraphDef(
            versions=self._graph.versions, node=nodes, library={"function": functions}
        )


def _operation(tensor: str) -> str:
    """Return the operation of a tensor, or of a control edge such as "^init", by name."""
    return tensor.removeprefix("^").partition(":")[0]


def _called(nodes: Iterable[Message], functions: Collection[str]) -> Iterator[str]:
    """Yield the names of the functions that nodes call or have as an attribute."""
    for node in nodes:
        if node.op in functions:
            yield node.op
        yield from (function.name for function in _functions_named(node))


def _functions_named(node):
    """Yield the attributes of a node that name functions."""
    for value in node.attr.values():
        yield from (function for function in (value.func, *value.list.func) if function.name)


def _closure(first: Iterable[str], following) -> set[str]:
    """Return all names that the first ones lead to, and these themselves."""
    names = set()
    waiting = list(first)
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting.extend(following(name))
    return names


def rename(graph: Message, prefix: str) -> None:
    """Put a prefix before the names of a graph's functions and of its shared resources."""
    functions = {function.signature.name for function in graph.library.function}
    for node in _all_nodes(graph):
        if node.op in functions:
            node.op = prefix + node.op
        for function in _functions_named(node):
            function.name = prefix + function.name
        if "shared_name" in node.attr:
            name = node.attr["shared_name"].s or node.name.encode()
            node.attr["shared_name"].s = prefix.encode() + name
    for function in graph.library.function:
        function.signature.name = prefix + function.signature.name


def make_cancellable(graph: Message) -> None:
    """Let a run of a graph's functions check before each large operation whether it was cancelled.

    TensorFlow checks when a step of a loop begins, and when a function is called. So the first
    input of each passes through an identity function (measured: no slower, and the same numbers).
    In loops that is not needed.
    """
    bodies = {function.signature.name: function.node_def for function in graph.library.function}
    loops = _closure(
        (
            name
            for node in _all_nodes(graph)
            if node.op in LOOPS
            for name in _called([node], bodies)
        ),
        lambda name: _called(bodies[name], bodies),
    )
    identities = {}
    for name, nodes in bodies.items():
        large = [node for node in nodes if node.op in LARGE and name not in loops]
        for number, node in enumerate(large):
            dtype = node.attr["T"].type
            check = nodes.add(name=f"cancellable_{number}", op="PartitionedCall")
            check.input.append(node.input[0])
            check.attr["Tin"].list.type.append(dtype)
            check.attr["Tout"].list.type.append(dtype)
            check.attr["f"].func.name = identities.setdefault(dtype, f"same_{dtype}")
            node.input[0] = f"{check.name}:output:0"
    for dtype, name in identities.items():
        _add_identity(graph, name, dtype)


def _add_identity(graph, name, dtype):
    """Add the identity function of a type."""
    function = graph.library.function.add()
    function.signature.name = name
    function.signature.input_arg.add(name="x", type=dtype)
    function.signature.output_arg.add(name="y", type=dtype)
    function.node_def.add(name="same", op="Identity", input=["x"]).attr["T"].type = dtype
    function.ret["y"] = "same:output:0"
    function.attr["_noinline"].b = True


def _all_nodes(graph):
    """Yield the nodes of a GraphDef and of its functions."""
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


def load_text_operations(graph: Message) -> None:
    """Register the operations of a graph that TensorFlow itself does not have.

    SentencePiece's operations have a library of their own. `import tensorflow_text` would register
    all operations, and import Keras (measured: 2 to 3 s).
    """
    functions = {function.signature.name for function in graph.library.function}
    foreign = {node.op for node in _all_nodes(graph)} - functions - set(dir(tf.raw_ops))
    if not foreign or "tensorflow_text" in sys.modules:
        return
    if all(name.startswith(SENTENCEPIECE) for name in foreign):
        [folder] = importlib.util.find_spec("tensorflow_text").submodule_search_locations
        tf.load_op_library(str(pathlib.Path(folder) / LIBRARY))
    else:
        import tensorflow_text  # noqa: F401


def sentencepiece_models(graph: Message) -> list[bytes]:
    """Return the vocabularies in a GraphDef, as SentencePiece writes them."""
    return [node.attr["model"].s for node in graph.node if node.op == "SentencepieceOp"]
