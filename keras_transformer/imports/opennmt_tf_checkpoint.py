"""The checkpoint of a model of OpenNMT-tf, and its model_description.py, parsed but never run."""

import ast
import pathlib
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import trackable_object_graph_pb2

from keras_transformer.imports.family import ANOTHER, RELEASE, require_finite
from pipelines.json_files import quote, read_text, refuse

GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# Errors of TensorFlow's reader for a file that is no checkpoint.
BROKEN = (tf.errors.OpError, LookupError, OSError, RuntimeError, ValueError)
# Arguments of its `Transformer`, in order, with their defaults.
ARGUMENTS = {
    "source_inputter": None,
    "target_inputter": None,
    "num_layers": 6,
    "num_units": 512,
    "num_heads": 8,
    "ffn_inner_dim": 2048,
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "ffn_dropout": 0.1,
    "ffn_activation": "tf.nn.relu",
    "mha_bias": True,
    "position_encoder_class": "SinusoidalPositionEncoder",
    "share_embeddings": None,
    "share_encoders": False,
    "maximum_relative_position": None,
    "attention_reduction": None,
    "pre_norm": True,
    "output_layer_bias": True,
}
BIG = {"num_units": 1024, "num_heads": 16, "ffn_inner_dim": 4096}
RELATIVE = {"position_encoder_class": None, "maximum_relative_position": 20}
# With --auto_config their sources end with EOS.
SCALING = {**BIG, "pre_norm": False, "output_layer_bias": False, "source_end": True}
# Models of its catalog, with the arguments that differ from the defaults.
CATALOG = {
    "Transformer": {},
    "TransformerBase": {},
    "TransformerBaseRelative": RELATIVE,
    "TransformerBaseSharedEmbeddings": {},
    "TransformerBig": BIG,
    "TransformerBigRelative": {**BIG, **RELATIVE},
    "TransformerBigSharedEmbeddings": BIG,
    "TransformerRelative": RELATIVE,
    "TransformerTiny": {"num_layers": 2, "num_units": 64, "num_heads": 2, "ffn_inner_dim": 64},
    "ScalingNmtEnDe": SCALING,
    "ScalingNmtEnFr": SCALING,
}


def read_description(path: pathlib.Path) -> dict[str, Any]:
    """Parse the arguments of the one Transformer that a model_description.py creates."""
    try:
        tree = ast.parse(read_text(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{path} is no Python ({error}). {RELEASE}") from error
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls = [call for call in calls if _model_name(call) in CATALOG]
    if len(calls) != 1:
        raise ValueError(
            f"{path} must create one Transformer, such as {', '.join([*CATALOG][:2])}. "
            f"Received: {len(calls)} of them. {ANOTHER}"
        )
    [call] = calls
    arguments = {**ARGUMENTS, **CATALOG[_model_name(call)]}
    positional = [] if _last_name(call.func) == "get_model_from_catalog" else call.args
    nodes = dict(zip(ARGUMENTS, positional, strict=False))
    nodes |= {keyword.arg: keyword.value for keyword in call.keywords}
    if unknown := [quote(str(name)) for name in nodes if name not in ARGUMENTS]:
        raise ValueError(
            f"{path} has arguments that we do not know: {', '.join(unknown)}. {ANOTHER}"
        )
    return arguments | {name: _literal(node, name, path) for name, node in nodes.items()}


def _model_name(call):
    """Return the catalog's name of the model that a call creates; any name if it creates none."""
    name = _last_name(call.func)
    if name == "get_model_from_catalog" and call.args:
        return getattr(call.args[0], "value", None)
    # A subclass calls super().__init__ with the arguments of a Transformer.
    is_super = name == "__init__" and isinstance(call.func.value, ast.Call)
    return "Transformer" if is_super and _last_name(call.func.value.func) == "super" else name


def _last_name(node):
    """Return the last part of a dotted name, such as relu of `tf.nn.relu`; None without a name."""
    return getattr(node, "attr", None) or getattr(node, "id", None)


def _literal(node, name, path):
    if name in ("source_inputter", "target_inputter", "share_embeddings", "attention_reduction"):
        return None
    if _last_name(node):
        return ast.unparse(node)
    try:
        return ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError):
        refuse(name, path, "a number or a name, because it is not run", ast.unparse(node), ANOTHER)


class Checkpoint:
    """The arrays of a checkpoint by path in the object graph, such as
    model/encoder/layer_norm/gamma. A variable may have several paths.
    """

    def __init__(self, prefix: pathlib.Path):
        self.path = prefix
        self._read = set()
        try:
            self._reader = tf.train.load_checkpoint(str(prefix))
            self._shapes = self._reader.get_variable_to_shape_map()
            graph = self._reader.get_tensor(GRAPH) if GRAPH in self._shapes else b""
            self._nodes = trackable_object_graph_pb2.TrackableObjectGraph.FromString(graph).nodes
        except (*BROKEN, DecodeError) as error:
            raise ValueError(f"{prefix} is no checkpoint, or is damaged. {RELEASE}") from error
        if not self._nodes:
            raise ValueError(
                f"{prefix} must be a checkpoint of OpenNMT-tf 2. Received: one of version 1. "
                "Convert it by onmt-convert-checkpoint."
            )

    def key(self, path: str) -> str | None:
        """Return the name of a variable in the file; None if there is no such variable."""
        node = self._node(path)
        return node.attributes[0].checkpoint_key if node and node.attributes else None

    def _node(self, path):
        node = self._nodes[0]
        for part in path.split("/"):
            ids = [child.node_id for child in node.children if child.local_name == part]
            if not ids or not 0 <= ids[0] < len(self._nodes):
                return None
            node = self._nodes[ids[0]]
        return node

    def __contains__(self, path):
        return self._node(path) is not None

    def count(self, path: str) -> int:
        """Return the number of layers in a list."""
        node = self._node(path)
        return sum(child.local_name.isdecimal() for child in node.children) if node else 0

    def shape(self, path: str) -> tuple[int, ...]:
        key = self.key(path)
        if key not in self._shapes:
            raise ValueError(
                f"{self.path} lacks the weight {path}, which a model of its settings has. {ANOTHER}"
            )
        return tuple(self._shapes[key])

    def __getitem__(self, path: str) -> np.ndarray:
        key = self.key(path)
        self._read.add(key)
        try:
            array = self._reader.get_tensor(key)
        except BROKEN as error:
            raise ValueError(f"{self.path}: the weight {path} is damaged. {RELEASE}") from error
        return require_finite(array, f"{self.path}: the weight {path}", ANOTHER)

    def unread(self) -> list[str]:
        """Return the names of the model's variables that were not read."""
        names = [name for name in self._shapes if name.startswith("model/")]
        return [name for name in names if name not in self._read and "OPTIMIZER_SLOT" not in name]
