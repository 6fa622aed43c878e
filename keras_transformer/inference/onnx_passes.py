"""What is done to an ONNX graph before it is written: a norm becomes one operation, and weights are
rounded to float16 or int8.
"""

import importlib
import logging
import os
import pathlib

import numpy as np

# Smaller weights are no bytes worth saving.
LEAST = 1024
# The operations of a norm, from its end to its beginning: each gives the input of the one before
# that has the number beside it.
NORM = (
    *(("Mul", 0), ("Mul", 1), ("Reciprocal", 0), ("Sqrt", 0), ("Add", 0), ("ReduceMean", 0)),
    *(("Mul", 0), ("Sub", 0), ("ReduceMean", 1)),
)


def write(model, path: pathlib.Path, precision: str) -> None:
    """Write an `onnx.ModelProto` with weights in "float32", "float16" or "int8"."""
    onnx = importlib.import_module("onnx")
    join_norms(onnx, model.graph)
    if precision == "int8":
        # It would write a file and report to its maker from the import on.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        quantization = importlib.import_module("onnxruntime.quantization")
        kind = quantization.QuantType.QInt8
        # It advises to do what ONNX Runtime does when it loads a graph.
        logging.disable(logging.WARNING)
        quantization.quantize_dynamic(model, path, weight_type=kind)
        logging.disable(logging.NOTSET)
        return
    if precision == "float16":
        halve(onnx, model.graph)
    onnx.save(model, path)


def halve(onnx, graph) -> None:
    """Keep weights in float16. ONNX Runtime makes float32 of them once, when it loads them."""
    casts = []
    for weight in graph.initializer:
        array = onnx.numpy_helper.to_array(weight)
        if array.dtype == np.float32 and array.size >= LEAST:
            name = weight.name
            half = f"{name}_half"
            weight.CopyFrom(onnx.numpy_helper.from_array(array.astype(np.float16), half))
            to = onnx.TensorProto.FLOAT
            casts.append(onnx.helper.make_node("Cast", [half], [name], to=to))
    _replace(graph.node, [*casts, *graph.node])


def join_norms(onnx, graph) -> None:
    """Make one LayerNormalization (Ba et al. 2016) of the ten operations of each norm."""
    made = {name: node for node in graph.node for name in node.output}
    values = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    for node in graph.node:
        if found := _norm(node, made, values):
            inputs, numbers = found
            name = f"{node.name}_joined"
            node.CopyFrom(
                onnx.helper.make_node("LayerNormalization", inputs, node.output, name, **numbers)
            )
    used = {one.name for one in graph.output}
    kept = []
    for node in reversed(graph.node):
        if used & {*node.output}:
            used |= {*node.input}
            kept.append(node)
    _replace(graph.node, kept[::-1])
    _replace(graph.initializer, [one for one in graph.initializer if one.name in used])


def _norm(end, made, values):
    """The inputs and the numbers of the norm that an operation ends, else None:
    (x - mean) * (1 / sqrt(mean((x - mean)^2) + epsilon) * gamma) + beta.
    """
    nodes = [end]
    for kind, place in NORM if end.op_type == "Add" else ():
        node = made.get(nodes[-1].input[place])
        if node is None or node.op_type != kind:
            return None
        nodes.append(node)
    if len(nodes) == 1:
        return None
    _, outer, scale, _, _, sum_, _, square, centred, mean = nodes
    [x, *axes] = mean.input
    [gamma, beta, epsilon, *axes] = [scale.input[1], end.input[1], sum_.input[1], *axes]
    is_norm = (
        outer.input[0] == square.input[1] == square.input[0] == centred.output[0]
        and x == centred.input[0]
        and {gamma, beta, epsilon, *axes} <= values.keys()
        and values[gamma].ndim == values[beta].ndim == 1
    )
    if not is_norm or [values[axis].tolist() for axis in axes] != [[-1]]:
        return None
    return [x, gamma, beta], {"axis": -1, "epsilon": float(values[epsilon])}


def _replace(messages, others):
    others = [type(one).FromString(one.SerializeToString()) for one in others]
    del messages[:]
    messages.extend(others)
