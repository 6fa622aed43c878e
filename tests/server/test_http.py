"""HTTP beyond a plain request: gzip, HEAD, OPTIONS, CORS, names of models, and any bytes that come.
Long requests time out, delay no others, and stop or never begin when their client is gone.
"""

import asyncio
import concurrent.futures
import contextlib
import gzip
import http.client
import json
import socket
import threading
import time
import weakref
import zlib

import numpy as np
import pytest
from shell import wait_until
from string_model import Slow

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from keras_transformer.saved_models.session import SavedModel
from keras_transformer.server import running, transport
from keras_transformer.server.options import ServeOptions

PREDICT = "/v1/models/m:predict"
BODY = b'{"instances": ["a"]}'
ANSWER = {"predictions": ["A"]}
GZIP = {"Content-Encoding": "gzip"}


def zipped(body):
    """The same bytes at any time, as the workers of the suite must collect the same tests."""
    return gzip.compress(body, mtime=0)


ZIPPED = zipped(BODY)
METRICS = "/monitoring/prometheus/metrics"


@pytest.mark.parametrize(
    "body",
    [ZIPPED, zipped(BODY[:7]) + zipped(BODY[7:]), ZIPPED + zipped(b"")],
    ids=["one member", "two members", "an empty member"],
)
@pytest.mark.parametrize("is_in_pieces", [False, True])
def test_a_gzip_body_is_inflated_beside_the_event_loop(client, body, is_in_pieces, monkeypatch):
    loops = []
    inflated = transport._Inflater.inflated
    noted = lambda *a: loops.append(asyncio._get_running_loop()) or inflated(*a)  # noqa: E731
    monkeypatch.setattr(transport._Inflater, "inflated", noted)
    content = (body[at : at + 1] for at in range(len(body))) if is_in_pieces else body
    response = client.post(PREDICT, content=content, headers=GZIP)
    assert (response.status_code, response.json()) == (200, ANSWER)
    assert set(loops) == {None}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (ZIPPED[:-1], 400, "The gzip body is incomplete"),
        (b"", 400, "The gzip body is incomplete"),
        (ZIPPED + b"x", 400, "The gzip body is incomplete"),
        (ZIPPED + b"rest", 400, "The body is not gzip"),
        (ZIPPED[:-8] + bytes(8), 400, "The body is not gzip"),
        (BODY, 400, "The body is not gzip"),
        (zlib.compress(BODY), 400, "The body is not gzip"),
        (zipped(BODY + b" " * 2**20), 413, "no longer than 1,048,576 bytes"),
        (zipped(bytes(2**25)), 413, "no longer than 1,048,576 bytes"),
        (zipped(b"") * 60_000, 413, "no longer than 1,048,576 bytes"),
        (zipped(zipped(BODY)), 400, "the body is not UTF-8"),
    ],
)
def test_a_gzip_body_that_is_broken_or_too_long_is_refused(client, body, status, words):
    for content in (body, iter([body])):
        response = client.post(PREDICT, content=content, headers=GZIP)
        assert (response.status_code, words in response.json()["error"]) == (status, True)


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd", "gzip, gzip", "x" * 5000])
def test_another_encoding_is_refused(client, encoding):
    response = client.post(PREDICT, content=BODY, headers={"Content-Encoding": encoding})
    assert response.status_code == 415
    assert "Content-Encoding must be gzip, or left out." in response.json()["error"]


@pytest.mark.parametrize("encoding", ["GZIP", "x-gzip", "identity", ""])
def test_gzip_and_identity_have_several_names(client, encoding):
    body = ZIPPED if "gzip" in encoding.lower() else BODY
    response = client.post(PREDICT, content=body, headers={"Content-Encoding": encoding})
    assert response.json() == ANSWER


@pytest.mark.parametrize("path", ["/", "/health", "/metrics", METRICS, "/v1/models/m", "/v3"])
def test_head_is_get_without_a_body(client, path):
    head = client.head(path)
    get = client.get(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    assert head.headers.keys() == get.headers.keys()


@pytest.mark.parametrize(
    ("path", "status", "methods"),
    [
        ("/health", 200, "GET, HEAD, OPTIONS"),
        ("/v1/models/m/metadata", 200, "GET, HEAD, OPTIONS"),
        (PREDICT, 200, "OPTIONS, POST"),
        ("/v3", 404, None),
        ("/v1/models/m:predikt", 400, None),
    ],
)
def test_options_are_the_methods_of_a_path_or_its_error(client, path, status, methods):
    response = client.options(path)
    assert (response.status_code, response.headers.get("allow")) == (status, methods)
    assert list(response.json()) == ["error"] if methods is None else response.content == b""


def test_tf_serving_s_path_of_metrics_gives_the_same_metrics(client):
    assert client.get(METRICS).text.splitlines()[:2] == client.get("/metrics").text.splitlines()[:2]


def test_with_the_flag_alone_pages_of_other_sites_may_ask(exported, start, client):
    expected = {
        "access-control-allow-origin": "*",
        "access-control-allow-methods": "POST, GET",
        "access-control-allow-headers": "Content-Type",
    }
    origin = {"Origin": "https://example.org"}
    preflight = {"Access-Control-Request-Method": "POST"}
    without = client.post(PREDICT, content=BODY, headers=origin)
    assert not expected.keys() & without.headers.keys()
    with start(exported / "m", rest_api_enable_cors_support=True) as permitting:
        answers = [
            permitting.options(PREDICT, headers=origin | preflight),
            permitting.post(PREDICT, content=BODY, headers=origin),
            permitting.post(PREDICT, content=b"no JSON", headers=origin),
            permitting.get("/v1/models/m", headers=origin),
        ]
        permitting.service.versions._current.model.run = None
        answers.append(permitting.post(PREDICT, content=BODY, headers=origin))
        assert [answer.status_code for answer in answers] == [200, 200, 400, 200, 500]
        for answer in answers:
            assert expected.items() <= answer.headers.items()
        # Metrics are for those who run the server.
        assert not expected.keys() & permitting.get("/metrics", headers=origin).headers.keys()


@pytest.mark.parametrize("name", ["", "a/b", "a:b", "a/"])
def test_a_name_that_no_url_can_have_is_refused(name):
    with pytest.raises(ValueError, match="--model_name must be a name without / and :"):
        transport.check_name(name)


@pytest.mark.parametrize("name", ["m", "my model", "übersetzer", "50%", "a?b#c", "a.b-c_d"])
def test_a_name_in_a_url_may_be_percent_encoded(exported, start, name):
    quoted = "".join(f"%{byte:02X}" for byte in name.encode())
    with start(exported / "m", name=name) as client:
        assert client.post(f"/v1/models/{quoted}:predict", content=BODY).json() == ANSWER
        assert client.get(f"/v1/models/{quoted}").status_code == 200


LENGTH = f"Content-Length: {len(BODY)}\r\n".encode()
ASK = b"POST " + PREDICT.encode()
HEAD = b" HTTP/1.1\r\nHost: x\r\n"
CHUNKS = b"5\r\n" + BODY[:5] + b"\r\nf;a=b\r\n" + BODY[5:] + b"\r\n0\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
MESSAGES = {
    "HTTP/1.0": (ASK + b" HTTP/1.0\r\n" + LENGTH + b"\r\n" + BODY, 200),
    "HTTP/1.0 without a length": (ASK + b" HTTP/1.0\r\n\r\n" + BODY, 400),
    "an absolute URI": (ASK.replace(b" /", b" http://x/") + HEAD + LENGTH + b"\r\n" + BODY, 200),
    "an absolute URI without a path": (b"GET HTTP://x" + HEAD + b"\r\n", 200),
    "chunks": (ASK + HEAD + CHUNKED + b"\r\n" + CHUNKS, 200),
    "a chunk of no length": (ASK + HEAD + CHUNKED + b"\r\nx\r\n", 400),
    "a chunk that is endless": (ASK + HEAD + CHUNKED + b"\r\n" + b"f" * 30 + b"\r\n", 400),
    **{
        f"length {length[:9]!r}": (
            ASK + HEAD + b"Content-Length: " + length + b"\r\n\r\n" + BODY,
            413 if len(length) == 19 else 400,
        )
        for length in (*(b"3", b"-1", b"+20", b"x", b"20, 21"), b"9" * 19, b"9" * 5000, b"\xb2")
    },
    "a length and chunks": (ASK + HEAD + LENGTH + CHUNKED + b"\r\n" + CHUNKS, 200),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "a header of 200 kB": (b"GET /health" + HEAD + b"A: " + b"a" * 200_000 + b"\r\n\r\n", 400),
    "5,000 headers": (b"GET /health" + HEAD + b"A: a\r\n" * 5000 + b"\r\n", 200),
    "a path of 200 kB": (b"GET /" + b"a" * 200_000 + HEAD + b"\r\n", 400),
    # Paths and methods, with an answer each.
    **{
        text.decode("latin1"): (text + HEAD + b"\r\n", status)
        for text, status in [
            (b"GET /\xff", 400),
            (b"GET /v1/models/%FF", 404),
            (b"GET /v1/models/%00", 404),
            (b"GET /v1/models/a%2Fb", 400),
            (b"GET /v1/models/%zz%4", 404),
            (b"GET /health/", 404),
            (b"GET /v1/models/m/versions/9999999999999999999", 404),
            (b"GET /v1/models/m/versions/0000001", 200),
            (b"OPTIONS *", 404),
            (b"CONNECT x:80", 404),
            (b"FROB /health", 405),
        ]
    },
    "a slash behind a method": (ASK + b"/" + HEAD + b"Content-Length: 0\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n", 400),
    "an upgrade": (
        b"GET /health" + HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n",
        200,
    ),
}


def connection(client):
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=30)


def answer(open_socket, method="GET"):
    """The status of one answer, and its body."""
    with contextlib.closing(http.client.HTTPResponse(open_socket, method=method)) as response:
        response.begin()
        return response.status, response.read()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MESSAGES)
def test_any_bytes_are_answered(client, name):
    message, status = MESSAGES[name]
    with connection(client) as open_socket:
        open_socket.sendall(message)
        try:
            assert answer(open_socket)[0] == status
        except ConnectionResetError:
            # The server answered and closed before the rest of the message came.
            assert len(message) > 2**16
    assert client.post(PREDICT, content=BODY).json() == ANSWER


def test_a_connection_goes_on_after_a_refusal_or_a_failure_of_the_server(client, monkeypatch):
    request = ASK + HEAD + LENGTH + b"\r\n" + BODY
    with connection(client) as open_socket:
        for message, expected in [
            (ASK + HEAD + b"Content-Length: 7\r\n\r\nno JSON", 400),
            (b"GET /v3" + HEAD + b"\r\n", 404),
            (b"HEAD /health" + HEAD + b"\r\n", 200),
            (ASK + HEAD + LENGTH + b"Content-Encoding: br\r\n\r\n" + BODY, 415),
            (request, 200),
        ]:
            open_socket.sendall(message)
            method = message.split()[0].decode()
            status, body = answer(open_socket, method)
            assert (status, body == b"") == (expected, method == "HEAD")
        model = client.service.versions._current.model
        for run, expected in [(None, 500), (model.run, 200)]:
            monkeypatch.setattr(model, "run", run)
            open_socket.sendall(request)
            assert answer(open_socket)[0] == expected


@pytest.mark.parametrize(("length", "status"), [(len(BODY), 100), (2**30, 413)])
def test_a_client_that_expects_100_gets_it_or_the_refusal(client, length, status):
    with connection(client) as open_socket:
        headers = b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % length
        open_socket.sendall(ASK + HEAD + headers)
        with open_socket.makefile("rb") as lines:
            line = lines.readline()
        assert int(line.split()[1]) == status


def test_pipelined_requests_are_all_answered(client):
    with connection(client) as open_socket:
        request = ASK + HEAD + LENGTH + b"\r\n" + BODY
        last = request.replace(b"Host: x", b"Connection: close\r\nHost: x")
        open_socket.sendall(request * 3 + last)
        with open_socket.makefile("rb") as lines:
            text = lines.read()
    assert text.count(json.dumps(ANSWER).encode()) == 4


def test_a_low_limit_holds_for_the_inflated_body(exported, start):
    with start(exported / "m", max_request_bytes=len(BODY)) as client:
        longer = zipped(BODY + b" ")
        assert client.post(PREDICT, content=BODY).status_code == 200
        assert client.post(PREDICT, content=longer, headers=GZIP).status_code == 413


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
