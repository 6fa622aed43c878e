"""A function of TensorFlow as a graph of ONNX: a norm and a product with a matrix become one
operation each, and weights are rounded to float16 or int8.
"""

import importlib
import logging
import os
import pathlib
from collections.abc import Callable, Sequence

import numpy as np

PACKAGES = ("tf2onnx", "onnx", "onnxruntime")
MODULES = ("tf2onnx.convert",)
# The newest set of operations that tf2onnx knows.
OPSET = 18
# The scope of operations that only propose what others verify.
PROPOSALS = "proposals"
# Smaller weights are no bytes worth saving.
LEAST = 1024
# The operations of a norm, from its end to its beginning, each with the number of its input that
# the next one gives. Of its two first products either may come first.
NORM = (
    *(("Reciprocal", 0), ("Sqrt", 0), ("Add", 0), ("ReduceMean", 0), ("Mul", 0)),
    *(("Sub", 1), ("ReduceMean", 0)),
)
NORMS = (
    (("Add", 0), ("Mul", 1), ("Mul", 0), *NORM),
    (("Add", 0), ("Mul", 0), ("Mul", 1), *NORM),
)
# What a slice of all rows takes, and at least what one of all of several axes takes.
WHOLE = 2**31 - 1
ALL = 10**9
# Those of a product of x with a matrix, and of the sizes that it is given at the end.
PRODUCT = (("Reshape", 0), ("MatMul", 0), ("Reshape", 0))
SIZES = (("Concat", 0), ("Gather", 0), ("Shape", 0))


def convert(function: Callable, specifications: Sequence, path: pathlib.Path, precision: str):
    """Write the graph of a traced function with weights in "float32", "float16" or "int8"."""
    onnx = importlib.import_module("onnx")
    converter = importlib.import_module("tf2onnx.convert")
    # Of two reshapes it takes the first away, though the second may copy sizes of its result.
    converter.optimizer._get_optimizers().pop("remove_back_to_back", None)
    handlers = {"SelectV2": (_where, [])}
    model, _ = converter.from_function(
        function, specifications, opset=OPSET, custom_op_handlers=handlers
    )
    join(onnx, model.graph)
    share(onnx, model)
    # A proposal changes no translation: it is verified.
    if proposing := [*_products(model.graph, f"{PROPOSALS}/")]:
        model = _in_integers(onnx, model, path, nodes_to_quantize=proposing)
    if precision == "int8":
        model = _in_integers(onnx, model, path, per_channel=True)
    if precision == "float16":
        halve(onnx, model.graph)
    onnx.save(model, path)


def _products(graph, scope):
    """The names of a scope's products. Those with a sum in them are taken apart, and renamed."""
    for node in graph.node:
        if node.name.startswith(scope) and node.op_type in ("Gemm", "MatMul"):
            yield f"{node.name}_MatMul" if node.op_type == "Gemm" else node.name


def _in_integers(onnx, model, path, **which):
    """A model whose products with weights, or some of them, are those of integers."""
    # It would write a file and report to its maker from the import on.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    quantization = importlib.import_module("onnxruntime.quantization")
    kind = quantization.QuantType.QInt8
    # It advises to do what ONNX Runtime does when it loads a graph.
    logging.disable(logging.WARNING)
    quantization.quantize_dynamic(model, path, weight_type=kind, **which)
    logging.disable(logging.NOTSET)
    return onnx.load(path)


def _where(context, node, name, arguments):
    """A choice by conditions. The converter makes five operations of it, and NaN of infinities."""
    node.type = "Where"


def halve(onnx, graph) -> None:
    """Keep weights in float16. ONNX Runtime makes float32 of them once, when it loads them."""
    casts = []
    for weight in graph.initializer:
        array = onnx.numpy_helper.to_array(weight)
        if array.dtype == np.float32 and array.size >= LEAST:
            name = weight.name
            half = f"{name}_half"
            weight.CopyFrom(onnx.numpy_helper.from_array(array.astype(np.float16), half))
            casts.append(onnx.helper.make_node("Cast", [half], [name], to=onnx.TensorProto.FLOAT))
    _replace(graph.node, [*casts, *graph.node])


def join(onnx, graph) -> None:
    """Make one LayerNormalization (Ba et al. 2016) of the ten operations of each norm, one MatMul
    of a product between two reshapes, and of some columns of a product, and one of two reshapes.
    Nothing is left of what changes nothing, such as a choice between ids.
    """
    made = {name: node for node in graph.node for name in node.output}
    values = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    # A product between reshapes would not be known any more after the last rule.
    for rule in (_row, _norm, _product, _columns, _flat, _same):
        for node in graph.node:
            if found := rule(node, made, values):
                _become(onnx, graph, node, *found)
    # The sizes of what is only passed on would not be known.
    passed = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}
    for node in graph.node:
        for place, name in enumerate(node.input):
            while name in passed:
                name = passed[name]
            node.input[place] = name
    used = {one.name for one in graph.output} | {*_read_inside(graph)}
    kept = []
    for node in reversed(graph.node):
        if used & {*node.output}:
            used |= {*node.input}
            kept.append(node)
    _replace(graph.node, kept[::-1])
    _replace(graph.initializer, [one for one in graph.initializer if one.name in used])


def _become(onnx, graph, node, kind, inputs, numbers):
    """Make another operation of a node; an input that is an array becomes a weight."""
    name = f"{node.name}_joined"
    for place, one in enumerate(inputs):
        if not isinstance(one, str):
            inputs[place] = f"{name}_weight"
            graph.initializer.append(onnx.numpy_helper.from_array(one, inputs[place]))
    node.CopyFrom(onnx.helper.make_node(kind, inputs, node.output, name, **numbers))


def _read_inside(graph):
    """What is read in the graphs that operations such as a loop have."""
    for node in graph.node:
        for inner in (one.g for one in node.attribute if one.HasField("g")):
            yield from (name for one in inner.node for name in one.input)
            yield from _read_inside(inner)


def share(onnx, model) -> None:
    """Compute once what several operations compute of the same tensors. The sizes of all states of
    one shape are the same, and so are those of all that is given of the source.
    """
    graph = model.graph
    for one in graph.input:
        dims = one.type.tensor_type.shape.dim
        kind = one.name.partition("_")[0]
        shape = "x".join(str(size.dim_value) for size in dims)
        for axis, size in enumerate(dims):
            if not size.HasField("dim_value"):
                size.dim_param = f"{kind}_{shape}_{axis}"
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    sizes = {
        one.name: [size.dim_value or size.dim_param for size in one.type.tensor_type.shape.dim]
        for one in (*inferred.input, *inferred.value_info)
    }
    needed = {one.name for one in graph.output} | {*_read_inside(graph)}
    same = {}
    first = {}
    kept = []
    for node in graph.node:
        node.input[:] = [same.get(name, name) for name in node.input]
        inputs = [*node.input]
        if node.op_type == "Shape" and all(sizes.get(inputs[0], [""])):
            inputs = sizes[inputs[0]]
        key = str((node.op_type, inputs, sorted(map(str, node.attribute))))
        earlier = first.setdefault(key, node)
        if earlier is node or {*node.output} & needed:
            kept.append(node)
        else:
            same |= zip(node.output, earlier.output, strict=True)
    _replace(graph.node, kept)


def _product(end, made, values):
    """The product that a reshape ends: of x (..., d), which was (rows, d), with a matrix."""
    nodes = _path(end.output[0], made, PRODUCT)
    sizes = _path(end.input[1], made, SIZES) if nodes else None
    if not sizes:
        return None
    _, product, flat = nodes
    concat, front, shape = sizes
    x = flat.input[0]
    matrix = values.get(product.input[1])
    constants = [flat.input[1], concat.input[1], front.input[1]]
    if shape.input[0] != x or matrix is None or not {*constants} <= values.keys():
        return None
    rows, last, places = (values[name].tolist() for name in constants)
    is_product = rows == [-1, len(matrix)] and last == [matrix.shape[-1]]
    if not is_product or matrix.ndim != 2 or places != [*range(len(places))]:
        return None
    return "MatMul", [x, product.input[1]], {}


def _flat(end, made, values):
    """A reshape to (rows, n) of another reshape."""
    nodes = _path(end.output[0], made, (("Reshape", 0), ("Reshape", 0)))
    if not nodes or end.input[1] not in values or values[end.input[1]][:-1].tolist() != [-1]:
        return None
    return "Reshape", [nodes[1].input[0], end.input[1]], {}


def _columns(end, made, values):
    """Columns of a product with a matrix, all of its rows."""
    nodes = _path(end.output[0], made, (("Slice", 0), ("MatMul", 0)))
    if not nodes or nodes[1].input[1] not in values or not {*end.input[1:]} <= values.keys():
        return None
    matrix = values[nodes[1].input[1]]
    starts, ends, axes, *steps = (values[name].tolist() for name in end.input[1:])
    if axes != [0, 1] or starts[0] or ends[0] < WHOLE or steps or matrix.ndim != 2:
        return None
    return "MatMul", [nodes[1].input[0], matrix[:, starts[1] : ends[1]]], {}


def _same(end, made, values):
    """A slice that leaves nothing out, and an axis that is added where it was taken away."""
    if not {*end.input[1:]} <= values.keys():
        return None
    if end.op_type == "Slice":
        starts, ends, _, *steps = (values[name] for name in end.input[1:])
        if starts.any() or (ends < ALL).any() or any((one != 1).any() for one in steps):
            return None
        return "Identity", [end.input[0]], {}
    nodes = _path(end.output[0], made, (("Unsqueeze", 0), ("Squeeze", 0)))
    if not nodes or nodes[1].input[1:] != end.input[1:]:
        return None
    return "Identity", [nodes[1].input[0]], {}


def _row(end, made, values):
    """Rows of a table by ids, of which Keras counts those below 0 from its end. So does ONNX."""
    nodes = _path(end.output[0], made, (("Gather", 1), ("Where", 1), ("Add", 0)))
    less = _path(nodes[1].input[0], made, (("Less", 0),)) if nodes else None
    if not less or not {end.input[0], less[0].input[1], nodes[2].input[1]} <= values.keys():
        return None
    ids = nodes[1].input[2]
    bounds = [values[name].tolist() for name in (less[0].input[1], nodes[2].input[1])]
    if nodes[2].input[0] != ids or bounds != [0, len(values[end.input[0]])]:
        return None
    return "Gather", [end.input[0], ids], {one.name: one.i for one in end.attribute}


def _norm(end, made, values):
    """The norm that a sum ends: (x - mean) * (1 / sqrt(mean((x - mean)^2) + e) * gamma) + beta."""
    first, second = (_path(end.output[0], made, kinds) for kinds in NORMS)
    if not first and not second:
        return None
    _, *products, _, _, sum_, _, square, centred, mean = first or second
    outer, scale = products if first else products[::-1]
    [x, *axes] = mean.input
    gamma = scale.input[1]
    beta = end.input[1]
    epsilon = sum_.input[1]
    is_norm = (
        outer.input[0] == square.input[1] == square.input[0] == centred.output[0]
        and x == centred.input[0]
        and {gamma, beta, epsilon, *axes} <= values.keys()
        and values[gamma].ndim == values[beta].ndim == 1
    )
    if not is_norm or [values[axis].tolist() for axis in axes] != [[-1]]:
        return None
    return "LayerNormalization", [x, gamma, beta], {"axis": -1, "epsilon": float(values[epsilon])}


def _path(name, made, kinds):
    """The operations of some kinds that lead back from a tensor, casts aside; None: others do."""
    nodes = []
    for kind, place in kinds:
        node = made.get(name)
        while node is not None and node.op_type == "Cast":
            node = made.get(node.input[0])
        if node is None or node.op_type != kind:
            return None
        nodes.append(node)
        name = node.input[place]
    return nodes


def _replace(messages, others):
    others = [type(one).FromString(one.SerializeToString()) for one in others]
    del messages[:]
    messages.extend(others)
