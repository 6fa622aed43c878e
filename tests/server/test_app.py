"""What the server does around a translation: limits, options, versions, health, metrics and the
log.
"""

import concurrent.futures
import io
import json
import os
import re
import shutil
import socket
import threading

import pytest
import tensorflow as tf
from shell import wait_until

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from keras_transformer.server import monitoring

PREDICT = "/v1/models/m:predict"


def predict(client, **document):
    response = client.post(PREDICT, json=document)
    return response.status_code, response.json()


def test_each_row_has_options_of_its_own(client):
    rows = [{"text": "a", "beam_size": 2}, {"text": "b"}, {"text": "c", "beam_size": 8}]
    _, answer = predict(client, signature_name="translate", instances=rows)
    expected = [["A|50|2|0.600000"], ["B|50|4|0.600000"], ["C|50|8|0.600000"]]
    assert [row["translations"] for row in answer["predictions"]] == expected


def test_two_required_inputs_are_named_and_equally_long(client):
    rows = [{"text": "ab", "reference": "c"}]
    _, answer = predict(client, signature_name="score", instances=rows)
    assert answer == {"predictions": [{"log_probability": -3.0, "tokens": 1}]}
    status, answer = predict(client, signature_name="score", instances=["ab"])
    assert status == 400
    assert "expecting list of objects as multiple input tensors required" in answer["error"]
    unequal = {"text": ["a", "b"], "reference": ["c"]}
    status, answer = predict(client, signature_name="score", inputs=unequal)
    assert status == 400
    assert "The inputs must have equally many rows" in answer["error"]


@pytest.mark.parametrize("signature", ["serving_default", "width"])
def test_requests_at_once_get_what_they_get_alone(exported, start, signature):
    texts = ["", "a", "fail", "ccc", "d" * 9]
    with start(exported / "m", batch_timeout_micros=3600 * 10**6) as client:
        client.service.batcher.max_batch_size = len(texts)
        rows = []
        client.service.batcher.on_batch = rows.append

        def ask(text):
            return predict(client, signature_name=signature, inputs=[text])

        with concurrent.futures.ThreadPoolExecutor(len(texts)) as pool:
            together = list(pool.map(ask, texts))
        assert rows == ([5] if signature == "serving_default" else [1] * 5)
        client.service.batcher.hurry()
        assert together == list(map(ask, texts))
    refused = 400 if signature == "serving_default" else 200
    assert [status for status, _ in together] == [200, 200, refused, 200, 200]
    # The model's refusal is told in one line.
    assert refused == 200 or re.fullmatch(".*this text fails.*", together[2][1]["error"])


@pytest.fixture(scope="module")
def limited(exported, start):
    """A client of a server with low limits."""
    limits = {"max_batch_size": 4, "max_text_bytes": 10, "max_request_bytes": 200}
    with start(exported / "m", **limits) as client:
        yield client


@pytest.mark.parametrize(
    ("document", "status", "words"),
    [
        ({"instances": ["a" * 11]}, 400, "no longer than 10 bytes. Received: 11"),
        ({"instances": ["a"] * 5}, 400, "maximum input batch size 4"),
        ({"instances": ["a"] * 100}, 413, "The request must be no longer than 200 bytes."),
    ],
)
def test_a_request_beyond_a_limit_is_refused(limited, document, status, words):
    actual_status, answer = predict(limited, **document)
    assert actual_status == status
    assert words in answer["error"]
    # A body that is sent in pieces has no Content-Length.
    body = json.dumps(document).encode()
    assert limited.post(PREDICT, content=iter([body[:100], body[100:]])).status_code == status
    assert predict(limited, instances=["a"] * 4)[0] == 200


ONE = tf.constant([1])
PAIR = tf.constant([[7, 8]])
# Signatures that our models do not have: their functions and the shapes of their inputs.
FOREIGN = {
    "scaled": (lambda x, s: {"y": x * s}, {"x": [None], "s": []}),
    "repeated": (lambda s: {"y": tf.fill([s], s)}, {"s": []}),
    "any_rank": (lambda x, k=ONE: {"y": x * k}, {"x": [None], "k": None}),
    "optional": (lambda a=ONE, b=ONE: {"y": a * 10 + b}, {"a": [None], "b": [None]}),
    "optional_width": (lambda a=PAIR: {"y": a[:, 0]}, {"a": [None, 2]}),
}


@pytest.fixture(scope="module")
def foreign_folder(tmp_path_factory):
    """A folder with a SavedModel of the signatures of `FOREIGN`, of whole numbers."""
    module = tf.Module()
    module.functions = {
        name: tf.function(
            function,
            input_signature=[tf.TensorSpec(shape, tf.int32, key) for key, shape in shapes.items()],
        )
        for name, (function, shapes) in FOREIGN.items()
    }
    folder = tmp_path_factory.mktemp("foreign")
    tf.saved_model.save(module, str(folder / "1"), signatures=module.functions)
    return folder


@pytest.fixture(scope="module")
def foreign(foreign_folder, start):
    """A client of a server of that SavedModel."""
    with start(foreign_folder) as client:
        yield client


@pytest.mark.parametrize(
    ("name", "document", "expected"),
    [
        ("scaled", {"inputs": {"x": [1, 2], "s": 3}}, [3, 6]),
        ("scaled", {"instances": [{"x": 1, "s": 3}]}, [3]),
        ("scaled", {"inputs": {"x": [], "s": 3}}, []),
        ("repeated", {"inputs": 2}, [2, 2]),
        ("repeated", {"instances": [2]}, [2, 2]),
        ("any_rank", {"inputs": {"x": [1, 2], "k": 3}}, [3, 6]),
        ("any_rank", {"inputs": {"x": [1, 2], "k": [3, 4]}}, [3, 8]),
        ("any_rank", {"inputs": [1, 2]}, [1, 2]),
        ("optional", {"instances": [{}, {}]}, [11, 11]),
        ("optional", {"instances": [{"a": 1}, {"a": 2}]}, [11, 21]),
        ("optional", {"instances": [{"a": 2}, {"b": 2}]}, [21, 12]),
        ("optional", {"instances": [{"b": 2}, {"b": 2}]}, [12, 12]),
        ("optional", {"inputs": {"a": [2, 2], "b": [3, 3]}}, [23, 23]),
        ("optional", {"inputs": {"a": 2, "b": []}}, []),
        ("optional", {"inputs": {}}, [11]),
        ("optional_width", {"instances": [{}]}, [7]),
        ("optional", {"inputs": {"a": [1, 2], "b": [1, 2, 3]}}, "must have equally many rows"),
        ("optional_width", {"instances": [{}, {}]}, "Expecting shape a value but got: nothing"),
    ],
)
def test_a_signature_that_is_not_ours_is_answered_or_its_rows_refused(
    foreign, name, document, expected
):
    status, answer = predict(foreign, signature_name=name, **document)
    if isinstance(expected, str):
        assert status == 400
        assert expected in answer["error"]
    else:
        assert (status, *answer.values()) == (200, expected)


def test_requests_without_rows_share_no_batch(foreign_folder, start):
    limits = {"max_batch_size": 2, "batch_timeout_micros": 3600 * 10**6}
    with (
        start(foreign_folder, **limits) as client,
        concurrent.futures.ThreadPoolExecutor(2) as pool,
    ):
        document = {"signature_name": "repeated", "inputs": 2}
        answers = [pool.submit(predict, client, **document) for _ in range(2)]
        assert [each.result() for each in answers] == [(200, {"outputs": [2, 2]})] * 2


def test_a_swap_of_versions_loses_no_request(exported, tmp_path, start):
    copy = shutil.copytree(exported / "m", tmp_path / "m")
    with start(copy) as client, concurrent.futures.ThreadPoolExecutor(1) as pool:
        model = client.service.versions._current.model
        run, begun, gate = model.run, threading.Event(), threading.Event()

        def blocked_run(*arguments):
            begun.set()
            # In case the test fails.
            gate.wait(60)
            return run(*arguments)

        model.run = blocked_run
        old = pool.submit(predict, client, instances=["a"])
        assert begun.wait(60)
        shutil.copytree(exported / "marked", copy / ".2.tmp")
        os.rename(copy / ".2.tmp", copy / "2")
        poll = threading.Thread(target=client.service.versions.poll)
        poll.start()
        wait_until(lambda: client.service.versions.states[1].state == "UNLOADING")
        # The old version's last request still occupies the only thread of batches.
        statuses = client.get("/v1/models/m").json()["model_version_status"]
        assert [status["state"] for status in statuses] == ["AVAILABLE", "UNLOADING"]
        gate.set()
        assert old.result() == (200, {"predictions": ["A"]})
        poll.join()
        assert predict(client, instances=["a"]) == (200, {"predictions": ["A!"]})
        assert client.get("/health").json() == {"ready": True, "versions": [2]}
        response = client.post("/v1/models/m/versions/1:predict", json={"instances": ["a"]})
        assert response.status_code == 404


def test_the_server_is_not_ready_once_it_has_unloaded_its_model(exported, start):
    with start(exported / "m") as client:
        assert client.get("/health").status_code == 200
        client.service.versions.close()
        response = client.get("/health")
        assert (response.status_code, response.json()) == (503, {"ready": False, "versions": []})


def test_requests_are_counted(exported, start):
    with start(exported / "m") as client:
        for instances, extra in (
            (["a", "b"], {}),
            ([1], {}),
            (["a"], {"signature_name": "private"}),
        ):
            predict(client, instances=instances, **extra)
        lines = client.get("/metrics").text.splitlines()
    for line in (
        'serve_requests_total{signature="serving_default",status="200"} 1.0',
        'serve_requests_total{signature="serving_default",status="400"} 1.0',
        # A name that a client makes up is no label: there would be no end of them.
        'serve_requests_total{signature="unknown",status="400"} 1.0',
        'serve_request_seconds_count{signature="serving_default"} 2.0',
        'serve_batch_rows_bucket{le="1.0"} 0.0',
        "serve_batch_rows_sum 2.0",
        "serve_queue_batches 0.0",
        "serve_loaded_versions 1.0",
    ):
        assert line in lines


def test_the_log_has_a_json_object_a_line_and_no_text_of_a_user(exported, start, monkeypatch):
    monkeypatch.setattr(monitoring.LOGGER, "handlers", [])
    stream = io.StringIO()
    monitoring.start_log(stream)
    with start(exported / "m") as client:
        for document in (
            {"instances": ["private"]},
            {"signature_name": "private", "instances": ["private"]},
            {"instances": ["fail"]},
            {"instances": [{"private": "private"}]},
        ):
            predict(client, **document)
        client.post("/v1/models/private:predict", content="private")
        model = client.service.versions._current.model
        model.run = lambda name, inputs, cancellation: inputs["private"]
        status, answer = predict(client, instances=["private"])
        assert (status, answer) == (500, {"error": "The server failed. Its log says where."})
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    statuses = [line["status"] for line in lines if line["event"] == "predict"]
    assert statuses == [200, *[400] * 4, 500]
    [failure] = [line for line in lines if line["event"] == "failed"]
    assert failure["error"].startswith("KeyError at ")
    assert "private" not in json.dumps(lines).replace(__file__, "")
    fields = {"time", "level", "signature", "rows", "version", "bytes", "milliseconds"}
    assert fields <= lines[0].keys()


def test_half_a_request_harms_nobody(client):
    with socket.create_connection((client.base_url.host, client.base_url.port)) as half:
        half.sendall(b"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        half.shutdown(socket.SHUT_WR)
        assert predict(client, instances=["a"]) == (200, {"predictions": ["A"]})


def test_pages_and_errors_of_the_web_framework_are_not_served(client):
    assert client.get("/docs").status_code == 404
    assert client.get("/v3").json() == {"error": "Not Found: GET /v3"}
    response = client.delete("/v1/models/m")
    assert (response.status_code, response.headers["allow"]) == (405, "GET")
