"""A program that knows nothing of ours: does a SavedModel give its golden translations, and what
does it need for that?

Run by path, with the folder of a version: of all packages it imports tensorflow and tensorflow_text
alone, and does with them what a server does. Prints one JSON object: `different`, texts with what
was expected and what came; `ops`, all that the graph uses; `not_served`, those of them that stock
TF Serving does not link: of TensorFlow's own it links all but calls of Python, and all of
tensorflow_text's; `modules`, what was imported.
"""

import base64
import json
import pathlib
import sys

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}


def main(folder):
    folder = pathlib.Path(folder)
    graph = saved_model_pb2.SavedModel.FromString(
        (folder / "saved_model.pb").read_bytes()
    ).meta_graphs[0]
    ops = ops_of(graph)
    # Before tensorflow_text is imported, so that its ops can be told from TensorFlow's.
    core = {op for op in ops if op_def_registry.get(op)}
    import tensorflow_text  # noqa: F401

    model = tf.saved_model.load(str(folder))
    golden = [
        json.loads(line)
        for line in (folder / "assets.extra" / "golden.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    for name, definition in graph.signature_def.items():
        if name in model.signatures:
            ask(model.signatures[name], definition, bytes_of(golden[0]["text"]))
    report = {
        "different": different(model.signatures["serving_default"], golden),
        "ops": sorted(ops),
        "not_served": sorted(
            op for op in ops if op in PYTHON or not (op in core or op_def_registry.get(op))
        ),
        "modules": sorted({name.partition(".")[0] for name in sys.modules}),
    }
    json.dump(report, sys.stdout)


def ops_of(graph):
    """Names of all operations of a MetaGraphDef."""
    functions = graph.graph_def.library.function
    nodes = [*graph.graph_def.node, *(node for function in functions for node in function.node_def)]
    return {node.op for node in nodes} - {function.signature.name for function in functions}


def bytes_of(text):
    return base64.b64decode(text["b64"]) if isinstance(text, dict) else text.encode()


def different(serve, golden):
    texts = [bytes_of(one["text"]) for one in golden]
    expected = [one["translation"] for one in golden]

    def translate(batch):
        return [line.decode() for line in serve(text=tf.constant(batch))["translation"].numpy()]

    batch = translate(texts)
    alone = [translate([text])[0] for text in texts]
    ways = {"in a batch": batch, "alone": alone}
    return [
        {"text": repr(text), "way": way, "expected": wanted, "came": came}
        for way, found in ways.items()
        for text, wanted, came in zip(texts, expected, found, strict=True)
        if came != wanted
    ]


def ask(signature, definition, text):
    """One sentence through a signature, the defaults filled in as a server does."""
    options = {
        name: tf.constant(tf.make_ndarray(value)) for name, value in definition.defaults.items()
    }
    signature(
        **{name: tf.constant([text]) for name in definition.inputs if name not in options},
        **options,
    )


if __name__ == "__main__":
    main(sys.argv[1])
