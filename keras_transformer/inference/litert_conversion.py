"""Convert a TensorFlow function to a graph of LiteRT's builtin operations."""

import pathlib
import re
from collections.abc import Callable, Sequence

import tensorflow as tf
from tensorflow.lite.python.convert import ConverterError
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from keras_transformer.inference.model_graphs import traced
from keras_transformer.tensorflow_errors import silence

PACKAGES = ("ai-edge-litert",)
MODULES = ("ai_edge_litert.interpreter",)
# How the converter names operations that are not builtin.
FOREIGN = re.compile(r"'tf\.(\w+)' op")


def convert(
    function: Callable, specifications: Sequence[tf.TensorSpec], path: pathlib.Path, precision: str
) -> None:
    """Write the graph of a traced function with weights in "float32", "float16" or "int8"."""
    concrete = function.get_concrete_function()
    # The converter silently drops variables.
    frozen = convert_variables_to_constants_v2(concrete, lower_control_flow=False)
    graph = frozen.graph.as_graph_def()
    nodes = {node.name: node for node in graph.node}
    for node in nodes.values():
        # A graph with custom gradients cannot be saved.
        node.attr.pop("_gradient_op_type", None)
        _to_expand_dims(graph, node)
        _to_matmul(nodes, node)
    _share_sizes(nodes, frozen.inputs)

    def named(*tensors):
        inputs = dict(zip((tensor.name for tensor in frozen.inputs), tensors, strict=True))
        outputs = [tensor.name for tensor in frozen.outputs]
        outputs = tf.graph_util.import_graph_def(graph, inputs, outputs)
        return dict(zip(sorted(concrete.structured_outputs), outputs, strict=True))

    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [traced(named, *specifications).get_concrete_function()], tf.Module()
    )
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.optimizations = [tf.lite.Optimize.DEFAULT] if precision != "float32" else []
    converter.target_spec.supported_types = [tf.float16] if precision == "float16" else []
    try:
        with silence():
            path.write_bytes(converter.convert())
    except ConverterError as error:
        operations = " or ".join(sorted({*FOREIGN.findall(str(error))}))
        raise ValueError(
            f"--format=litert has no {operations}, which this model's {path.stem} computes with. "
            "Export it by --format=onnx."
        ) from error


def _to_expand_dims(graph, node):
    """Turn a slice that only adds an axis, which is not builtin, into ExpandDims."""
    if node.op != "StridedSlice" or not (new := node.attr["new_axis_mask"].i):
        return
    axis = new.bit_length() - 1
    before = (1 << axis) - 1
    if node.attr["ellipsis_mask"].i == before == 1:
        axis = -1
    elif new != 1 << axis or node.attr["begin_mask"].i & node.attr["end_mask"].i & before != before:
        return
    place = graph.node.add(name=f"{node.name}/axis", op="Const")
    place.attr["dtype"].type = tf.int32.as_datatype_enum
    place.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(axis, tf.int32))
    kind = node.attr["T"].type
    node.op = "ExpandDims"
    node.input[1:] = [place.name]
    node.attr.clear()
    node.attr["T"].type = kind
    node.attr["Tdim"].type = tf.int32.as_datatype_enum


def _to_matmul(nodes, node):
    """Turn `tf.tensordot` with a matrix into one product, without computing sizes."""
    parts = [nodes.get(f"{node.name}/{part}") for part in ("axes", "free", "Reshape", "MatMul")]
    if node.op != "Reshape" or None in parts:
        return
    axes, free, flat, product = parts
    places = [*_constant(free), *_constant(axes)]
    if places != [*range(len(places))] or len(_constant(axes)) != 1:
        return
    source = nodes.get(f"{node.name}/transpose", flat).input[0]
    kind = node.attr["T"].type
    node.op = "BatchMatMulV2"
    node.input[:] = [source, product.input[1]]
    node.attr.clear()
    node.attr["T"].type = kind


def _share_sizes(nodes, inputs):
    """Read the sizes of states of one shape from the first of them: all grow alike."""
    states = [tensor for tensor in inputs if tensor.op.name.startswith("state_")]
    shapes = {state.op.name: str(state.shape) for state in states}
    first = {}
    for node in nodes.values():
        rows = nodes.get(node.input[0]) if node.op == "Shape" else None
        if rows and rows.op == "GatherV2" and rows.input[0] in shapes:
            node.input[0] = first.setdefault(shapes[rows.input[0]], rows.name)


def _constant(node):
    return tf.make_ndarray(node.attr["value"].tensor).tolist()
