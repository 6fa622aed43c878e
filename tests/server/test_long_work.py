"""Long requests over HTTP: they time out, delay no others, and stop or never begin when their
client leaves; long answers are bounded, and come in chunks.
"""

import concurrent.futures
import contextlib
import json
import socket
import threading
import time
import weakref

import numpy as np
import pytest
from string_model import Slow
from waiting import wait_until

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from keras_transformer.saved_models.session import SavedModel
from keras_transformer.server import running
from keras_transformer.server.options import ServeOptions

PREDICT = "/v1/models/m:predict"
SLOW = {"instances": ["slow"]}
QUICK = (200, {"predictions": ["A"]})
HOUR = 3600 * 10**6


def predict(client, row="a", **headers):
    response = client.post(PREDICT, json={"instances": [row]}, headers=headers)
    return response.status_code, response.json()


class Work:
    """Replaces a model's `run`: for the text "slow" it returns only when `end` is set."""

    def __init__(self, client):
        model = client.service.versions._current.model
        self._run = model.run
        self.begun = threading.Semaphore(0)
        self.end = threading.Event()
        model.run = self

    def __call__(self, name, inputs, cancellation):
        if b"slow" in inputs["text"]:
            self.begun.release()
            # In case the test fails.
            self.end.wait(60)
        return self._run(name, inputs, cancellation)


def leaving(client, document):
    """A connection that has sent a request. A client that closes it has left."""
    connection = socket.create_connection((client.base_url.host, client.base_url.port))
    body = json.dumps(document).encode()
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return contextlib.closing(connection)


def wait_for(client, status):
    """Wait until an answer of this status was counted."""
    wait_until(lambda: f'status="{status}"' in client.get("/metrics").text)


def is_idle(client):
    batcher = client.service.batcher
    return not batcher._running and not batcher.depth


@pytest.mark.parametrize(
    ("milliseconds", "headers"),
    [
        (50, {}),
        (60_000, {"grpc-timeout": "50m"}),
        (60_000, {"x-envoy-expected-rq-timeout-ms": "50"}),
    ],
)
def test_a_request_is_answered_when_its_time_is_over(exported, start, milliseconds, headers):
    with start(exported / "m", request_timeout_ms=milliseconds) as client:
        work = Work(client)
        status, answer = predict(client, "slow", **headers)
        message = "Timed out waiting for notification: it took longer than 0.05 s."
        assert (status, answer) == (504, {"error": message})
        work.end.set()
        client.service.options = ServeOptions()
        assert predict(client) == QUICK
        wait_until(lambda: is_idle(client))


def test_work_that_waits_is_never_begun_when_its_client_leaves(exported, start):
    with start(exported / "m") as client:
        work = Work(client)
        with leaving(client, SLOW):
            assert work.begun.acquire(timeout=60)
            with leaving(client, SLOW):
                wait_until(lambda: client.service.batcher.depth)
            wait_until(lambda: not client.service.batcher.depth)
        work.end.set()
        assert predict(client) == QUICK
        assert not work.begun.acquire(blocking=False)


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    """A folder of one version that counts."""
    folder = tmp_path_factory.mktemp("counting")
    Slow().write(folder / "1")
    return folder


def seconds_until_idle(client):
    began = time.monotonic()
    wait_until(lambda: is_idle(client))
    return time.monotonic() - began


ENDLESS = {"instances": [2**31 - 1]}


def test_work_that_goes_on_is_stopped_when_its_client_leaves(counting, start, monkeypatch):
    monkeypatch.setattr(SavedModel, "warm_up", lambda _: None)
    with start(counting) as client:
        assert predict(client, 1000) == (200, {"predictions": [1000]})
        with leaving(client, ENDLESS):
            wait_until(lambda: client.service.batcher._running)
        wait_for(client, 499)
        assert seconds_until_idle(client) < 1
        assert predict(client, 7) == (200, {"predictions": [7]})


def test_work_that_goes_on_is_stopped_when_its_time_is_over(counting, start, monkeypatch):
    monkeypatch.setattr(SavedModel, "warm_up", lambda _: None)
    with start(counting, request_timeout_ms=200) as client:
        assert client.post(PREDICT, json=ENDLESS).status_code == 504
        assert seconds_until_idle(client) < 1


def test_control_work_goes_on_for_the_other_client_of_its_batch(exported, start):
    with (
        start(exported / "m", batch_timeout_micros=HOUR) as client,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        client.service.batcher.max_batch_size = 2
        work = Work(client)
        with leaving(client, SLOW):
            future = pool.submit(predict, client)
            assert work.begun.acquire(timeout=60)
        wait_for(client, 499)
        assert not future.done()
        work.end.set()
        assert future.result() == QUICK


def test_health_is_answered_while_all_threads_are_held(exported, start):
    with (
        start(exported / "m", num_batch_threads=2) as client,
        concurrent.futures.ThreadPoolExecutor(20) as pool,
    ):
        # Otherwise one batch could take all requests, and none would wait.
        client.service.batcher.max_batch_size = 2
        work = Work(client)
        # More requests than threads that parse.
        futures = [pool.submit(predict, client, "slow") for _ in range(20)]
        # Both threads of batches are at work.
        for _ in range(2):
            assert work.begun.acquire(timeout=60)
        wait_until(lambda: client.service.batcher.depth)
        assert client.get("/health").json() == {"ready": True, "versions": [1]}
        assert "serve_loaded_versions 1.0" in client.get("/metrics").text
        assert client.get("/v1/models/m").status_code == 200
        assert not any(future.done() for future in futures)
        work.end.set()
        assert {future.result()[0] for future in futures} == {200}


def test_an_answer_that_may_be_too_long_is_refused_before_it_is_computed(exported, start):
    with start(exported / "m", max_response_bytes=20) as client:
        model = client.service.versions._current.model
        run, calls = model.run, []
        model.run = lambda *arguments: calls.append(arguments) or run(*arguments)
        rows = [{"text": "ab", "reference": "c"}] * 2
        document = {"signature_name": "score", "instances": rows}
        response = client.post(PREDICT, json=document)
        assert response.status_code == 400
        assert "--max_response_bytes=20. Send fewer rows" in response.json()["error"]
        assert not calls
        document["instances"].pop()
        assert client.post(PREDICT, json=document).status_code == 200
        assert len(calls) == 1


@pytest.fixture
def numbers():
    """Float32 numbers whose JSON is too long to be sent whole."""
    array = np.random.default_rng(1).normal(size=(1, 200, 300)).astype(np.float32)
    array[0, 0, :3] = [np.nan, np.inf, -np.inf]
    return array


def test_a_long_answer_comes_in_pieces(exported, start, numbers):
    with start(exported / "m") as client:
        client.service.versions._current.model.run = lambda *_: {"score": numbers}
        with client.stream("POST", PREDICT, json=SLOW) as response:
            assert response.headers["transfer-encoding"] == "chunked"
            assert "content-length" not in response.headers
            body = b"".join(response.iter_bytes())
        predictions = np.array(json.loads(body)["predictions"], np.float32)
        np.testing.assert_array_equal(predictions, numbers)
        # A short answer tells its length.
        client.service.versions._current.model.run = lambda *_: {"score": numbers[:, :9]}
        short = client.post(PREDICT, json=SLOW)
        assert short.headers["content-length"] == str(len(short.content))
        assert short.headers["content-type"] == response.headers["content-type"]


def test_a_client_that_leaves_within_a_long_answer_harms_nobody(exported, start, numbers):
    with start(exported / "m") as client:
        model = client.service.versions._current.model
        run = model.run
        model.run = lambda *_: {"score": np.tile(numbers, (1, 100, 1))}
        with leaving(client, SLOW) as connection:
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        model.run = run
        assert predict(client) == QUICK


def test_a_long_answer_that_nobody_reads_is_freed(exported, start, numbers, monkeypatch):
    monkeypatch.setattr(running, "TAKING_SECONDS", 1)
    with start(exported / "m") as client:
        answers = [{"score": np.tile(numbers, (1, 100, 1))}]
        is_freed = threading.Event()
        weakref.finalize(answers[0]["score"], is_freed.set)
        client.service.versions._current.model.run = lambda *_: answers.pop()
        with leaving(client, SLOW):
            wait_for(client, 200)
            assert is_freed.wait(600)


def test_a_request_without_rows_takes_no_memory(exported, start):
    with start(exported / "m", max_memory_bytes=1) as client:
        answer = client.post(PREDICT, json={"signature_name": "width", "inputs": []})
    assert (answer.status_code, answer.json()) == (200, {"outputs": []})


def test_a_request_in_parts_takes_one_place_of_the_queue(exported, start):
    # There is so little memory that each row becomes a part of its own.
    with (
        start(exported / "m", max_memory_bytes=40_000_000, max_enqueued_batches=1) as client,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        work = Work(client)
        with leaving(client, SLOW):
            assert work.begun.acquire(timeout=60)
            parts = pool.submit(client.post, PREDICT, json={"instances": ["a", "b", "c", "d"]})
            wait_until(lambda: client.service.batcher.depth)
            response = client.post(PREDICT, json={"instances": ["a"] * 4})
            assert response.status_code == 503
            assert "is full" in response.json()["error"]
            assert client.service.batcher.depth == 1
            work.end.set()
        assert parts.result().json() == {"predictions": ["A", "B", "C", "D"]}
