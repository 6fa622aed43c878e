"""Check a SavedModel in a process that imports only TensorFlow and tensorflow_text, as a server
does: does it give its golden outputs, and which operations does it need?

`check` runs this file by its path, with the folder of a version. It prints one JSON object:

    different   the golden examples with other outputs: the expected and the actual ones
    ops         all operations that the graph uses
    not_served  those of them that a stock TF Serving lacks. It has all of TensorFlow's own except
                calls of Python, and all of tensorflow_text's
    modules     the packages that were imported
"""

import base64
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

PROGRAM = pathlib.Path(__file__)
PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}
# The process returns its memory, because the one that exports holds the model too.
FRUGAL = {
    "TF_ONEDNN_USE_SYSTEM_ALLOCATOR": "1",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "262144",
}
# Tolerances of floats: a batch is summed in another order than a single row.
RELATIVE = 1e-4
ABSOLUTE = 1e-5


def check(folder: pathlib.Path) -> None:
    """Check a SavedModel's operations and golden examples, single and batched, in a new process."""
    result = report(folder)
    if result["different"]:
        first = result["different"][0]
        raise ValueError(
            f"nothing was exported: {len(result['different'])} golden examples differ from the "
            f"live model's. The first, {first['way']}: {first['inputs']} to {first['came']}, "
            f"expected {first['expected']}."
        )
    if result["not_served"]:
        lacking = ", ".join(result["not_served"])
        raise ValueError(f"nothing was exported: stock TF Serving does not link {lacking}.")


def report(folder: pathlib.Path) -> dict:
    """Run this file on a version, and return what it prints."""
    # With the packages of this process, also a user's and PYTHONPATH's; -P: without this folder.
    process = subprocess.run(
        [sys.executable, "-P", PROGRAM, pathlib.Path(folder).resolve()],
        capture_output=True,
        cwd="/",
        env={**os.environ, **FRUGAL, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    if process.returncode:
        reason = (
            process.stderr.decode(errors="replace").strip() or f"status {process.returncode}"
        ).splitlines()[-1]
        raise ValueError(
            f"nothing was exported: the written model does not run in a new process ({reason})."
        )
    return json.loads(process.stdout)


def main(folder):
    """Check a version in this process, and print the result."""
    folder = pathlib.Path(folder)
    graph = saved_model_pb2.SavedModel.FromString(
        (folder / "saved_model.pb").read_bytes()
    ).meta_graphs[0]
    ops = ops_of(graph)
    # Before tensorflow_text is imported, so that its ops are not among TensorFlow's.
    core = {op for op in ops if op_def_registry.get(op)}
    import tensorflow_text  # noqa: F401

    model = tf.saved_model.load(str(folder))
    lines = (folder / "assets.extra" / "golden.jsonl").read_text(encoding="utf-8").splitlines()
    golden = [json.loads(line) for line in lines]
    default = graph.signature_def["serving_default"]
    infos = infos_of(graph.signature_def, default)
    for name, definition in graph.signature_def.items():
        if name in model.signatures:
            ask(model.signatures[name], definition, typed(golden[0], infos))
    report = {
        "different": different(
            model.signatures["serving_default"], default, [typed(line, infos) for line in golden]
        ),
        "ops": sorted(ops),
        "not_served": sorted(
            op for op in ops if op in PYTHON or not (op in core or op_def_registry.get(op))
        ),
        "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    }
    json.dump(report, sys.stdout)


def ops_of(graph):
    """Return the names of all operations of a MetaGraphDef."""
    functions = graph.graph_def.library.function
    nodes = [*graph.graph_def.node, *(node for function in functions for node in function.node_def)]
    return {node.op for node in nodes} - {function.signature.name for function in functions}


def infos_of(definitions, default):
    """Return the TensorInfo of each name in golden.jsonl: the default signature's, or an input."""
    inputs = {}
    for definition in definitions.values():
        inputs |= definition.inputs
    return {**inputs, **default.inputs, **default.outputs}


def typed(line, infos):
    """Return a line of golden.jsonl as arrays, by name."""
    return {
        name: np.array(from_json(value), tf.as_dtype(infos[name].dtype).as_numpy_dtype)
        for name, value in line.items()
    }


def from_json(value):
    """Convert strings to bytes, also in lists; {"b64": ...} stands for bytes that are not UTF-8."""
    if isinstance(value, list):
        return [from_json(element) for element in value]
    if isinstance(value, dict):
        return base64.b64decode(value["b64"])
    return value.encode() if isinstance(value, str) else value


def arguments(dtypes, example):
    """Return a batch of size 1 for each required input of a signature, from a golden example."""
    arrays = {}
    for name, dtype in dtypes.items():
        fitting = [array for array in example.values() if tf.as_dtype(array.dtype) == dtype]
        arrays[name] = np.asarray(example[name] if name in example else fitting[0])[None]
    return arrays


def ask(signature, definition, example):
    """Call a signature with one example, and with its defaults, as a server does."""
    options = {
        name: tf.constant(tf.make_ndarray(value)) for name, value in definition.defaults.items()
    }
    dtypes = {
        name: tf.as_dtype(info.dtype)
        for name, info in definition.inputs.items()
        if name not in options
    }
    arrays = arguments(dtypes, example)
    signature(**{name: tf.constant(arrays[name], dtypes[name]) for name in arrays}, **options)


def different(serve, definition, examples):
    """Return the golden examples whose outputs differ, alone or in a batch of equal shapes."""
    batches = {}
    for example in examples:
        shapes = tuple(example[name].shape for name in definition.inputs)
        batches.setdefault(shapes, []).append(example)
    ways = [("in a batch", batch) for batch in batches.values()]
    ways += [("alone", [example]) for example in examples]
    return [
        difference(way, example, outputs, definition)
        for way, batch in ways
        for example, outputs in zip(batch, answers(serve, definition, batch), strict=True)
        if not all(equal(outputs[name], example[name]) for name in outputs if name in example)
    ]


def answers(serve, definition, batch):
    """Return the outputs of each example of a batch, arrays by name."""
    inputs = {
        name: tf.constant(np.stack([example[name] for example in batch]), info.dtype)
        for name, info in definition.inputs.items()
    }
    outputs = {name: tensor.numpy() for name, tensor in serve(**inputs).items()}
    return [{name: array[row] for name, array in outputs.items()} for row in range(len(batch))]


def equal(came, expected):
    came = np.asarray(came)
    if came.shape != expected.shape or came.dtype.kind not in "fc":
        return np.array_equal(came, expected)
    return np.allclose(came, expected, RELATIVE, ABSOLUTE, equal_nan=True)


def difference(way, example, outputs, definition):
    def words(arrays):
        values = {name: np.asarray(array).tolist() for name, array in arrays.items()}
        return repr(next(iter(values.values())) if len(values) == 1 else values)

    return {
        "inputs": words({name: example[name] for name in definition.inputs}),
        "way": way,
        "expected": words({name: example[name] for name in outputs if name in example}),
        "came": words(outputs),
    }


if __name__ == "__main__":
    main(sys.argv[1])
