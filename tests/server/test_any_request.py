"""Any path, headers and body get an answer: what the request asks for, or what is wrong with it.
Hypothesis draws the requests, and the application answers them in this process.
"""

import asyncio
import base64
import collections
import gzip
import json
import pathlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("fastapi")

from shared import unpack

from keras_transformer.server import app as server_app
from keras_transformer.server import open_inference
from keras_transformer.server.batcher import Batcher
from keras_transformer.server.options import ServeOptions, Vertex
from keras_transformer.server.served_versions import Versions
from keras_transformer.server.service import Service

RELEASE = pathlib.Path(__file__).parents[1] / "fixtures" / "release_0_7"
# Toy models: a GPT, a classifier and so on. Together they get 10,000 requests.
TASKS = sorted(path.name.removesuffix(".tar.xz") for path in RELEASE.glob("*.tar.xz"))
FEW = 300
MANY = 1_430
# Of milliseconds: the server's own time limit, which no request reaches.
HOUR = 3_600_000
# Statuses of refused requests. 500 is a fault of the server.
REFUSALS = {400, 404, 405, 413, 415, 503}
PREDICT = "/v1/models/m:predict"
INFER = "/v2/models/m/infer"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(30)).decode()

TEXTS = st.text(st.characters(categories=None), max_size=20) | st.sampled_from(
    ["", "\x00", "\ud800", "a <mask> b", "(S (NP a))", "a" * 6000, "A\u0301" * 40, "\u202e"]
)
NUMBERS = st.integers() | st.floats() | st.sampled_from([0, -1, 2**31 - 1, 2**31, 2**63, 10**400])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
BYTES = st.sampled_from(["YQ==", "YQ", "", "%", "a", PNG]) | TEXTS
VALUES = st.recursive(
    SCALARS | st.fixed_dictionaries({"b64": BYTES | SCALARS}),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
METHODS = st.sampled_from(["GET", "POST", "HEAD", "OPTIONS", "PUT", "FROB"])
PARTS = st.sampled_from(
    [
        *("v1", "v2", "health", "ready", "infer", "models", "m", "m:predict", "versions", "1"),
        *("01", "labels", "stable:predict", "metadata"),
    ]
) | st.sampled_from(["", "\x00", "..", "http:", "*", "9" * 19, "9" * 5000])
PATHS = st.lists(PARTS | TEXTS, max_size=6).map(lambda parts: "/" + "/".join(parts))
HEADERS = st.dictionaries(
    st.sampled_from([b"content-encoding", b"content-type", b"origin", b"accept-encoding"]),
    st.sampled_from([b"gzip", b"identity", b"br", b"", b"application/json", b"https://x", b"\xff"]),
)


def documents(signatures):
    """Objects that are requests to these signatures, or nearly."""
    # Half of the values have the right type, so that some requests reach the model.
    typed = {"object": TEXTS | st.fixed_dictionaries({"b64": BYTES}), "bool": st.booleans()}

    def requests_to(signature):
        fields = {
            name: st.one_of(
                typed.get(spec.dtype.name, NUMBERS), typed.get(spec.dtype.name, NUMBERS), VALUES
            )
            for name, spec in signature.inputs.items()
        }
        required = {name: fields[name] for name in signature.required}
        optional = {name: fields[name] for name in signature.defaults}
        optional |= {"other": VALUES}
        row = st.fixed_dictionaries(required, optional=optional)
        columns = st.fixed_dictionaries(
            {name: st.lists(values, max_size=3) | values for name, values in required.items()},
            optional={name: st.lists(values, max_size=3) for name, values in optional.items()},
        )
        rows = st.lists(row | fields[signature.plain_input], max_size=3)
        return st.fixed_dictionaries({"instances": rows}) | st.fixed_dictionaries(
            {"inputs": columns | st.lists(fields[signature.plain_input], max_size=3)}
        )

    named = [
        requests_to(signature).map(lambda document, name=name: {"signature_name": name, **document})
        for name, signature in signatures.items()
    ]
    junk = st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("signature_name", "instances", "inputs", "other"), VALUES)
    )
    return st.one_of(*named, *named, junk, VALUES)


@st.composite
def bodies(draw, requests):
    """A request's JSON, damaged in two cases of five."""
    document = draw(requests)
    body = json.dumps(document).encode()
    damage = draw(st.integers(0, 19))
    place = draw(st.integers(0, len(body)))
    if damage == 0:
        return body[:place]
    if damage == 1:
        return body[:place] + draw(st.binary(max_size=4)) + body[place + 1 :]
    if damage == 2:
        return body[:place] + draw(st.sampled_from([b"[", b'{"a":'])) * 100_000 + body[place:]
    if damage == 3:
        return body[:-1] + b", " + body[1:]
    if damage == 4:
        return body.decode().encode("utf-16")
    if damage == 5:
        return b'{"instances": ' + b"9" * draw(st.sampled_from([400, 5000, 10**6])) + b"}"
    if damage == 6:
        return gzip.compress(body)[: draw(st.integers(0, 200))]
    if damage == 7:
        return json.dumps(document, ensure_ascii=False).encode("utf-8", errors="surrogatepass")
    return body


@st.composite
def inferences(draw, signatures):
    """The body of a request of the Open Inference Protocol, or nearly, and its headers."""
    signature_name, signature = draw(st.sampled_from(sorted(signatures.items())))
    tensors = []
    blobs = b""
    for name, spec in signature.inputs.items():
        if name in signature.defaults and draw(st.integers(0, 3)):
            continue
        kind = open_inference.tensors({name: spec})[0]["datatype"]
        size = draw(st.sampled_from([1, 1, 2, 0]))
        tensor = {"name": name, "datatype": kind, "shape": [size]}
        if draw(st.booleans()):
            elements = TEXTS if kind == "BYTES" else st.just(1) | NUMBERS
            tensor["data"] = draw(st.lists(elements, min_size=size, max_size=size) | VALUES)
        else:
            texts = draw(st.lists(st.binary(max_size=8), min_size=size, max_size=size))
            blob = b"".join(struct.pack("<I", len(text)) + text for text in texts)
            blob = blob if kind == "BYTES" else draw(st.binary(max_size=16))
            tensor["parameters"] = {"binary_data_size": len(blob)}
            blobs += blob
        field = st.sampled_from(["data", "shape", "datatype", "parameters", "name"])
        if draw(st.integers(0, 4)) == 0:
            tensor[draw(field)] = draw(VALUES)
        tensors.append(tensor)
    parameters = {"signature_name": signature_name} | draw(
        st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(signature.defaults, st.just(1) | NUMBERS),
                **dict.fromkeys(("timeout", "glossary", "other"), VALUES),
                "binary_data_output": st.booleans(),
            },
        )
        if draw(st.booleans())
        else st.just({})
    )
    document = {"inputs": tensors, "parameters": parameters}
    if draw(st.integers(0, 4)) == 0:
        document[draw(st.sampled_from(["inputs", "outputs", "parameters", "id"]))] = draw(VALUES)
    head = json.dumps(document).encode()
    length = draw(st.sampled_from([len(head)] * 8 + ["", "-1", 0, 10**30, len(head) + 1, "\u00b2"]))
    headers = {b"inference-header-content-length": str(length).encode()}
    return head + blobs, headers if blobs or draw(st.booleans()) else {}


def ask(application, method, path, headers, body):
    """The status and the body of an answer."""
    messages = []
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if not pending:
            # The client waits for its answer.
            await asyncio.Event().wait()
        return pending.pop()

    async def send(message):
        messages.append(message)

    scope = {"type": "http", "http_version": "1.1", "method": method, "path": path}
    scope |= {"query_string": b"", "headers": [*headers.items()], "scheme": "http"}
    scope["server"] = ("x", 80)
    asyncio.run(application(scope, receive, send))
    return messages[0]["status"], b"".join(message.get("body", b"") for message in messages[1:])


def judge(status, body, asks_for_time=False):
    """Check that an answer is a success, or a JSON object whose error has no traceback. Only a
    request that asks for a time limit may run out of it.
    """
    assert status in {200, *REFUSALS, *([504] if asks_for_time else [])}, (status, body[:500])
    if status != 200:
        error = json.loads(body)
        if error.get("ready") is False:
            return
        assert error.keys() == {"error"}
        assert "Traceback" not in error["error"]
        assert "Graph execution error" not in error["error"]


def check(folder, examples):
    """Send this many requests to the SavedModel in a folder."""
    versions = Versions(folder)
    options = ServeOptions(batch_timeout_micros=0, num_batch_threads=1, request_timeout_ms=HOUR)
    batcher = Batcher(options)
    try:
        has_success = collections.defaultdict(bool)
        signatures = versions._current.model.signatures
        requests = documents(signatures)
        application = server_app.build(Service("m", versions, batcher, options), False, Vertex())

        @settings(settings.get_profile("the same each time"), max_examples=examples)
        @given(st.data())
        def check_request(data):
            is_random = data.draw(st.integers(0, 4)) == 0
            method = data.draw(METHODS) if is_random else "POST"
            is_v2 = data.draw(st.booleans())
            path = data.draw(PATHS) if is_random else INFER if is_v2 else PREDICT
            headers = data.draw(HEADERS) if data.draw(st.integers(0, 4)) == 0 else {}
            if is_v2:
                body, length_header = data.draw(inferences(signatures))
                headers |= length_header
            else:
                body = data.draw(bodies(requests))
            status, answer = ask(application, method, path, headers, body)
            if method == "OPTIONS" or path in ("/", "/metrics"):
                assert status < 500
                return
            judge(status, answer, asks_for_time=b'"timeout"' in body)
            has_success[path] |= status == 200

        check_request()
        # Some requests must succeed, or the test would see refusals only. But drawn bytes are no
        # picture.
        inputs = {name for signature in signatures.values() for name in signature.inputs}
        assert "png" in inputs or (has_success[INFER] and has_success[PREDICT])
    finally:
        batcher.close()
        versions.close()


def test_any_request_is_answered(exported):
    check(exported / "m", FEW)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_any_request_to_a_model_of_any_task_is_answered(task, tmp_path):
    unpack(RELEASE / f"{task}.tar.xz", tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "saved_model").rename(tmp_path / "m" / "1")
    check(tmp_path / "m", MANY)


@pytest.mark.parametrize("status", [500, 504])
def test_control_a_failure_is_no_answer(status):
    with pytest.raises(AssertionError):
        judge(status, b'{"error": "The server failed. Its log says where."}')
