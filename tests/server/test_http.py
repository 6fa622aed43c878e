"""HTTP beyond a plain request: gzip, HEAD, OPTIONS, CORS, names of models, and any bytes that come
over a socket.
"""

import asyncio
import contextlib
import gzip
import http.client
import json
import socket
import zlib

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from keras_transformer.server import transport

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
