"""The gRPC client in docs/serving.md, against a server of TF Serving's own service definition that
answers from a function.
"""

import concurrent.futures
import pathlib

import grpc
import pytest
import tensorflow as tf
from documentation.pages import blocks
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

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
