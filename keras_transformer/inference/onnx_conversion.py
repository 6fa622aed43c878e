"""Convert a TensorFlow function to an ONNX graph: fuse the operations of each norm and each product
with a matrix, and round weights to float16 or int8.
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
# Optimizers of tf2onnx that are not run. The last removes the first of two reshapes even if the
# second copies sizes of its result; the others walk through our graphs and find nothing.
LEFT_OUT = (
    *("remove_redundant_upsample", "const_dequantize_optimizer", "loop_optimizer"),
    *("global_pool_optimizer", "q_dq_optimizer", "remove_back_to_back"),
)
# The scope of operations that propose tokens, which others verify.
PROPOSALS = "proposals"
# Smaller weights stay in float32: rounding them saves too little.
LEAST = 1024
# The operations of a norm, from the last to the first, each with the index of the input that the
# next one in the list computes. Its two products may come in either order.
NORM = (
    *(("Reciprocal", 0), ("Sqrt", 0), ("Add", 0), ("ReduceMean", 0), ("Mul", 0)),
    *(("Sub", 1), ("ReduceMean", 0)),
)
NORMS = [(("Add", 0), ("Mul", place), ("Mul", 1 - place), *NORM) for place in (1, 0)]
# The end of a slice of all rows, and the least end of a slice of all of several axes.
WHOLE = 2**31 - 1
ALL = 10**9
# The operations of a product of x with a matrix, and of the sizes for its last reshape.
PRODUCT = (("Reshape", 0), ("MatMul", 0), ("Reshape", 0))
SIZES = (("Concat", 0), ("Gather", 0), ("Shape", 0))


def convert(function: Callable, specifications: Sequence, path: pathlib.Path, precision: str):
    """Write the graph of a traced function with weights in "float32", "float16" or "int8"."""
    onnx = importlib.import_module("onnx")
    converter = importlib.import_module("tf2onnx.convert")
    for name in LEFT_OUT:
        converter.optimizer._get_optimizers().pop(name, None)
    # Otherwise each optimizer would work on a copy of the graph, which takes longer than its work.
    os.environ["TF2ONNX_CATCH_ERRORS"] = "False"
    handlers = {"SelectV2": (_where, [])}
    model, _ = converter.from_function(
        function, specifications, opset=OPSET, custom_op_handlers=handlers
    )
    join(onnx, model.graph)
    share(onnx, model)
    # Proposals are verified, so that rounding them changes no translation.
    if names := [*_products(model.graph, f"{PROPOSALS}/")]:
        model = _quantized(onnx, model, path, nodes_to_quantize=names)
    if precision == "int8":
        model = _quantized(onnx, model, path, per_channel=True)
    if precision == "float16":
        halve(onnx, model.graph)
    onnx.save(model, path)


def _products(graph, scope):
    """Yield the names of a scope's products; quantization splits and renames a Gemm."""
    for node in graph.node:
        if node.name.startswith(scope) and node.op_type in ("Gemm", "MatMul"):
            yield f"{node.name}_MatMul" if node.op_type == "Gemm" else node.name


def _quantized(onnx, model, path, **options):
    """Return a model whose products with weights, or some of them, are computed in int8."""
    # Otherwise importing it would write a file, and report to its maker.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    quantization = importlib.import_module("onnxruntime.quantization")
    # It advises a preparation that ONNX Runtime does itself when it loads a graph.
    logging.disable(logging.WARNING)
    quantization.quantize_dynamic(model, path, weight_type=quantization.QuantType.QInt8, **options)
    logging.disable(logging.NOTSET)
    return onnx.load(path)


def _where(context, node, name, arguments):
    """Convert tf.where to Where. The converter makes five operations, and NaN of infinities."""
    node.type = "Where"


def halve(onnx, graph) -> None:
    """Store weights in float16. ONNX Runtime casts them to float32 once, when it loads them."""
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
    """Fuse the ten operations of each norm into one LayerNormalization (Ba et al. 2016), a product
    between two reshapes, or one whose columns are sliced, into one MatMul, and two reshapes into
    one. Remove operations without effect.
    """
    producers = {name: node for node in graph.node for name in node.output}
    values = {weight.name: onnx.numpy_helper.to_array(weight) for weight in graph.initializer}
    # `_reshape` comes after `_product`, whose reshapes it would change.
    for rule in (_lookup, _norm, _product, _columns, _reshape, _no_op):
        for node in graph.node:
            if fused := rule(node, producers, values):
                _rewrite(onnx, graph, node, *fused)
    # Shape inference must see through identities.
    origins = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Identity"}
    for node in graph.node:
        for place, name in enumerate(node.input):
            while name in origins:
                name = origins[name]
            node.input[place] = name
    used = {output.name for output in graph.output} | {*_read_inside(graph)}
    live = []
    for node in reversed(graph.node):
        if used & {*node.output}:
            used |= {*node.input}
            live.append(node)
    _replace(graph.node, live[::-1])
    _replace(graph.initializer, [weight for weight in graph.initializer if weight.name in used])


def _rewrite(onnx, graph, node, kind, inputs, attributes):
    """Turn a node into another operation; an input that is an array becomes a weight."""
    name = f"{node.name}_joined"
    for place, tensor in enumerate(inputs):
        if not isinstance(tensor, str):
            inputs[place] = f"{name}_weight"
            graph.initializer.append(onnx.numpy_helper.from_array(tensor, inputs[place]))
    node.CopyFrom(onnx.helper.make_node(kind, inputs, node.output, name, **attributes))


def _read_inside(graph):
    """Yield the names of tensors that subgraphs, such as a loop's body, read."""
    for node in graph.node:
        for inner in (attribute.g for attribute in node.attribute if attribute.HasField("g")):
            yield from (name for inner_node in inner.node for name in inner_node.input)
            yield from _read_inside(inner)


def share(onnx, model) -> None:
    """Merge operations that compute the same of the same tensors. States of one shape have equal
    sizes, and so do tensors of the source of one shape.
    """
    graph = model.graph
    for tensor in graph.input:
        dims = tensor.type.tensor_type.shape.dim
        kind = tensor.name.partition("_")[0]
        shape = "x".join(str(size.dim_value) for size in dims)
        for axis, size in enumerate(dims):
            if not size.HasField("dim_value"):
                size.dim_param = f"{kind}_{shape}_{axis}"
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    sizes = {
        info.name: [size.dim_value or size.dim_param for size in info.type.tensor_type.shape.dim]
        for info in (*inferred.input, *inferred.value_info)
    }
    needed = {output.name for output in graph.output} | {*_read_inside(graph)}
    renamed = {}
    first = {}
    distinct = []
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        inputs = [*node.input]
        if node.op_type == "Shape" and all(sizes.get(inputs[0], [""])):
            inputs = sizes[inputs[0]]
        key = str((node.op_type, inputs, sorted(map(str, node.attribute))))
        earlier = first.setdefault(key, node)
        if earlier is node or {*node.output} & needed:
            distinct.append(node)
        else:
            renamed |= zip(node.output, earlier.output, strict=True)
    _replace(graph.node, distinct)


def _product(end, producers, values):
    """Match x (..., d) that is reshaped to (rows, d), multiplied by a matrix, and reshaped back."""
    nodes = _chain(end.output[0], producers, PRODUCT)
    sizes = _chain(end.input[1], producers, SIZES) if nodes else None
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


def _reshape(end, producers, values):
    """Match a reshape to (rows, n) of another reshape."""
    nodes = _chain(end.output[0], producers, (("Reshape", 0), ("Reshape", 0)))
    if not nodes or end.input[1] not in values or values[end.input[1]][:-1].tolist() != [-1]:
        return None
    return "Reshape", [nodes[1].input[0], end.input[1]], {}


def _columns(end, producers, values):
    """Match a slice of columns, with all rows, of a product with a matrix."""
    nodes = _chain(end.output[0], producers, (("Slice", 0), ("MatMul", 0)))
    if not nodes or nodes[1].input[1] not in values or not {*end.input[1:]} <= values.keys():
        return None
    matrix = values[nodes[1].input[1]]
    starts, ends, axes, *steps = (values[name].tolist() for name in end.input[1:])
    if axes != [0, 1] or starts[0] or ends[0] < WHOLE or steps or matrix.ndim != 2:
        return None
    return "MatMul", [nodes[1].input[0], matrix[:, starts[1] : ends[1]]], {}


def _no_op(end, producers, values):
    """Match a slice of everything, and an axis that is removed and added again."""
    if not {*end.input[1:]} <= values.keys():
        return None
    if end.op_type == "Slice":
        starts, ends, _, *steps = (values[name] for name in end.input[1:])
        if starts.any() or (ends < ALL).any() or any((step != 1).any() for step in steps):
            return None
        return "Identity", [end.input[0]], {}
    nodes = _chain(end.output[0], producers, (("Unsqueeze", 0), ("Squeeze", 0)))
    if not nodes or nodes[1].input[1:] != end.input[1:]:
        return None
    return "Identity", [nodes[1].input[0]], {}


def _lookup(end, producers, values):
    """Match rows of a table by ids. Keras adds the size to negative ids; ONNX does so itself."""
    nodes = _chain(end.output[0], producers, (("Gather", 1), ("Where", 1), ("Add", 0)))
    less = _chain(nodes[1].input[0], producers, (("Less", 0),)) if nodes else None
    if not less or not {end.input[0], less[0].input[1], nodes[2].input[1]} <= values.keys():
        return None
    ids = nodes[1].input[2]
    bounds = [values[name].tolist() for name in (less[0].input[1], nodes[2].input[1])]
    if nodes[2].input[0] != ids or bounds != [0, len(values[end.input[0]])]:
        return None
    return "Gather", [end.input[0], ids], {field.name: field.i for field in end.attribute}


def _norm(end, producers, values):
    """Match (x - mean) * (1 / sqrt(mean((x - mean)^2) + e) * gamma) + beta."""
    first, second = (_chain(end.output[0], producers, kinds) for kinds in NORMS)
    if not first and not second:
        return None
    _, *products, _, _, shifted, _, square, centred, mean = first or second
    outer, scale = products if first else products[::-1]
    [x, *axes] = mean.input
    gamma, beta, epsilon = (node.input[1] for node in (scale, end, shifted))
    is_norm = (
        outer.input[0] == square.input[1] == square.input[0] == centred.output[0]
        and x == centred.input[0]
        and {gamma, beta, epsilon, *axes} <= values.keys()
        and values[gamma].ndim == values[beta].ndim == 1
    )
    if not is_norm or [values[axis].tolist() for axis in axes] != [[-1]]:
        return None
    return "LayerNormalization", [x, gamma, beta], {"axis": -1, "epsilon": float(values[epsilon])}


def _chain(name, producers, kinds):
    """Return the nodes that lead back from a tensor, without casts; None if the kinds differ."""
    nodes = []
    for kind, place in kinds:
        node = producers.get(name)
        while node is not None and node.op_type == "Cast":
            node = producers.get(node.input[0])
        if node is None or node.op_type != kind:
            return None
        nodes.append(node)
        name = node.input[place]
    return nodes


def _replace(messages, replacements):
    copies = [type(message).FromString(message.SerializeToString()) for message in replacements]
    del messages[:]
    messages.extend(copies)
