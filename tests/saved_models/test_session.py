"""A SavedModel in memory gives what TensorFlow's own reload gives, and leaves nothing behind."""

import concurrent.futures
import contextlib
import pathlib
import threading
import time
import weakref

import grpc
import numpy as np
import pytest
import tensorflow as tf
from documentation.pages import blocks
from string_model import Slow, StringModel
from tensorflow.python.eager import context
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from keras_transformer.saved_models.loaded_graph import make_cancellable
from keras_transformer.saved_models.session import CancellationManager, SavedModel

TEXT = np.array([b"a b", b"", b"c"], dtype=object)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of a SavedModel."""
    folder = tmp_path_factory.mktemp("exported")
    StringModel("").write(folder)
    return folder


@pytest.fixture(scope="module")
def model(exported):
    model = SavedModel(exported)
    yield model
    model.close()


@pytest.mark.parametrize(
    "name", ["serving_default", "nbest", "translate", "sample", "score", "align", "raw", "width"]
)
def test_a_signature_gives_what_tensorflow_s_reload_gives(model, exported, name):
    reloaded = tf.saved_model.load(str(exported)).signatures[name]
    inputs = dict.fromkeys(model.signatures[name].required, TEXT) | model.signatures[name].defaults
    outputs = model.run(name, inputs)
    expected = reloaded(**{key: tf.constant(array) for key, array in inputs.items()})
    assert outputs.keys() == expected.keys()
    for key in expected:
        np.testing.assert_array_equal(outputs[key], expected[key].numpy())


def test_defaults_are_read_from_the_folder(model):
    defaults = model.signatures["translate"].defaults
    sizes = {name: array.tolist() for name, array in defaults.items() if name != "length_penalty"}
    assert sizes == {"beam_size": [4], "max_length": [50], "num_hypotheses": [1]}
    assert model.signatures["translate"].required == ["text"]
    assert model.signatures["score"].required == ["reference", "text"]


def test_a_function_without_inputs_is_no_signature(model):
    assert "__saved_model_init_op" in model.definitions
    assert "__saved_model_init_op" not in model.signatures


def test_only_the_signatures_asked_for_are_loaded(model, exported):
    only = SavedModel(exported, ("score", "absent"))
    assert list(only.signatures) == ["score"]
    assert only.definitions.keys() == model.definitions.keys()
    inputs = {"text": TEXT, "reference": TEXT}
    np.testing.assert_equal(only.run("score", inputs), model.run("score", inputs))

    def nodes(model):
        return sum(len(function.graph.get_operations()) for function in model._loaded._wrapped)

    assert nodes(only) < nodes(model) / 2
    only.close()


class Lookup(tf.Module):
    """The length of a text, by a table that an asset fills, times a variable."""

    def __init__(self, path):
        super().__init__()
        lines = tf.lookup.TextFileInitializer(str(path), tf.string, 0, tf.int64, 1, delimiter=" ")
        self.table = tf.lookup.StaticHashTable(lines, -1)
        self.factor = tf.Variable(3, dtype=tf.int64)
        text = tf.TensorSpec([None], tf.string, name="text")
        self.look_up = tf.function(
            lambda text: {"number": self.table.lookup(text) * self.factor}, input_signature=[text]
        )


def test_a_dropped_model_leaves_nothing(exported):
    model = SavedModel(exported)
    model.warm_up()
    graph = weakref.ref(model._loaded._wrapped[0].graph)
    functions = [function.signature.name for function in model._loaded._graph.library.function]
    assert functions
    assert graph() is not None
    assert all(map(context.context().has_function, functions))
    model.close()
    assert graph() is None
    assert not any(map(context.context().has_function, functions))


def test_versions_in_memory_have_variables_and_tables_of_their_own(tmp_path):
    models = []
    for factor in (3, 5):
        (tmp_path / "table.txt").write_text(f"a {factor}\n")
        module = Lookup(tmp_path / "table.txt")
        module.factor.assign(factor)
        folder = tmp_path / str(factor)
        tf.saved_model.save(module, str(folder), signatures={"serving_default": module.look_up})
        models.append(SavedModel(folder))
    text = {"text": np.array([b"a"], object)}
    numbers = [model.run("serving_default", text)["number"].tolist() for model in models]
    assert numbers == [[9], [25]]
    models[0].close()
    assert models[1].run("serving_default", text)["number"].tolist() == [25]
    models[1].close()


@pytest.mark.parametrize(
    ("shape", "function"),
    [
        ([None, 1], lambda text: tf.strings.upper(tf.squeeze(text, 1))),
        ([], tf.strings.upper),
        (None, lambda text: tf.strings.upper(tf.ensure_shape(text, [2, 2]))),
        ([None], tf.strings.to_number),
    ],
)
def test_a_model_that_is_not_ours_is_warmed_up_or_refuses(tmp_path, shape, function):
    module = tf.Module()
    spec = tf.TensorSpec(shape, tf.string, name="text")
    module.call = tf.function(lambda text: {"out": function(text)}, input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path), signatures=module.call)
    model = SavedModel(tmp_path)
    model.warm_up()
    # Only an export of our own is broken if it refuses an empty text.
    (tmp_path / "model.json").touch()
    refuses = function is tf.strings.to_number
    with pytest.raises(tf.errors.InvalidArgumentError) if refuses else contextlib.nullcontext():
        model.warm_up()
    model.close()


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    Slow().write(folder)
    model = SavedModel(folder)
    yield model
    model.close()


@pytest.mark.parametrize(("name", "most"), [("count", 2**31 - 1), ("attend", 2000)])
def test_a_run_ends_when_it_is_cancelled_and_the_model_can_be_run_again(slow, name, most):
    slow.run(name, {"n": np.array([3], "int32")})
    cancellation = CancellationManager()
    times = []

    def cancel():
        times.append(time.monotonic())
        cancellation.start_cancel()

    timer = threading.Timer(0.2, cancel)
    timer.start()
    with pytest.raises(tf.errors.CancelledError):
        slow.run(name, {"n": np.array([most], "int32")}, cancellation)
    # The whole run would take more than 10 s.
    assert time.monotonic() - times[0] < 5
    slow.run(name, {"n": np.array([3], "int32")})


def test_a_run_that_is_cancelled_before_it_begins_never_begins(slow):
    cancellation = CancellationManager()
    cancellation.start_cancel()
    with pytest.raises(tf.errors.CancelledError):
        slow.run("count", {"n": np.array([2**31 - 1], "int32")}, cancellation)


def test_control_the_cancellation_of_one_run_ends_no_other(slow):
    cancellation = CancellationManager()
    counts = []
    number = {"n": np.array([200_000], "int32")}
    thread = threading.Thread(target=lambda: counts.append(slow.run("count", number)["n"].tolist()))
    thread.start()
    threading.Timer(0.05, cancellation.start_cancel).start()
    with pytest.raises(tf.errors.CancelledError):
        slow.run("count", {"n": np.array([2**31 - 1], "int32")}, cancellation)
    thread.join()
    assert counts == [[200_000]]


def test_a_run_can_be_cancelled_before_each_large_operation_outside_of_loops(slow):
    graph = tf.Graph().as_graph_def()
    for method in (Slow().attend, Slow().count):
        concrete = method.get_concrete_function()
        graph.library.MergeFrom(concrete.graph.as_graph_def().library)
        graph.library.function.add().CopyFrom(concrete.function_def)
    make_cancellable(graph)
    calls = [
        node.name
        for function in graph.library.function
        for node in function.node_def
        if node.op == "PartitionedCall"
    ]
    assert len(calls) == 200


def test_inputs_that_do_not_fit_are_refused(model):
    inputs = {"text": TEXT, **model.signatures["translate"].defaults}
    inputs["beam_size"] = np.array([1, 2], np.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"shapes: \[2\] vs. \[3\]"):
        model.run("translate", inputs)


# The gRPC client in docs/serving.md, against a server that has TF Serving's service definition.
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "serving.md"


class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers as TF Serving does, from a function in place of a model."""

    def Predict(self, request, context):
        assert request.model_spec.name == "translator"
        text = tf.constant(tf.make_ndarray(request.inputs["text"]))
        response = predict_pb2.PredictResponse()
        response.outputs["translation"].CopyFrom(
            tf.make_tensor_proto(tf.strings.join([text, " ü"]).numpy())
        )
        return response


@pytest.fixture
def port():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None).wait()


def test_the_client_in_the_documentation_translates(port, capsys):
    [code] = [
        block.code
        for block in blocks(PAGE.read_text(encoding="utf-8"))
        if "import grpc" in block.code
    ]
    exec(code.replace("localhost:8500", f"127.0.0.1:{port}"), {})
    assert capsys.readouterr().out == "Turn off the lights. ü\n"
