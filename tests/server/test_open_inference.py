"""The server's two protocols. Recorded bodies and URLs are answered as TF Serving answers them; the
Open Inference Protocol gives the same answers, also to Triton's client.
"""

import asyncio
import base64
import json
import struct
import threading

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from keras_transformer.server import binary_tensors

INFER = "/v2/models/m/infer"
TEXTS = ["a", "", "\u00e9 b", "z" * 40]
TRANSLATION = {"name": "translation"}


def tensor(name, *data, datatype="BYTES"):
    return {"name": name, "datatype": datatype, "shape": [len(data)], "data": list(data)}


def infer(client, *inputs, path=INFER, headers=None, **more):
    response = client.post(path, json={"inputs": list(inputs), **more}, headers=headers)
    return response.status_code, response.json()


def predicted(client, signature, **inputs):
    """The outputs by TF Serving's protocol."""
    document = {"signature_name": signature, "inputs": inputs}
    return client.post("/v1/models/m:predict", json=document).json()["outputs"]


def outputs_of(answer):
    outputs = answer["outputs"]
    return {each["name"]: np.reshape(each["data"], each["shape"]).tolist() for each in outputs}


def test_the_server_describes_itself(client):
    about = client.get("/v2").json()
    assert about["name"] == "keras_transformer.serve"
    assert {"binary_tensor_data", "parameters"} <= set(about["extensions"])
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    for path in ("/v2/models/m", "/v2/models/m/versions/1"):
        assert client.get(f"{path}/ready").json() == {"name": "m", "ready": True}
        about = client.get(path).json()
        assert about["inputs"] == [{"name": "text", "datatype": "BYTES", "shape": [-1]}]
        assert about["outputs"] == [{"name": "translation", "datatype": "BYTES", "shape": [-1]}]
        assert about["versions"] == ["1"]
        names = about["parameters"]["signatures"].split(", ")
        assert "translate" in names
        assert names == sorted(names)
    about = client.get("/v2/models/m", params={"signature_name": "translate"}).json()
    beam = {"name": "beam_size", "datatype": "INT32", "shape": [-1]}
    assert {**beam, "parameters": {"optional": True}} in about["inputs"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v2/models/other", 404),
        ("/v2/models/m/versions/2", 404),
        ("/v2/models/m?signature_name=none", 400),
        ("/v2/models/m/versions/two", 404),
        ("/v2/nothing", 404),
    ],
)
def test_an_unknown_path_is_refused_in_the_protocol_s_form(client, path, status):
    answer = client.get(path)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    ready = client.get(path.partition("?")[0] + "/ready")
    assert ready.status_code == (200 if "?" in path else 404)


def test_answers_are_those_of_the_other_protocol(client):
    status, answer = infer(client, tensor("text", *TEXTS), id="seven")
    translated = predicted(client, "serving_default", text=TEXTS)
    assert (status, answer["id"]) == (200, "seven")
    assert (answer["model_name"], answer["model_version"]) == ("m", "1")
    assert answer["outputs"] == [tensor("translation", *translated)]
    options = {"beam_size": 2, "length_penalty": 1, "max_length": 9, "num_hypotheses": 2}
    expected = predicted(client, "translate", text=TEXTS, **options)
    parameters = {"signature_name": "translate", **options}
    _, answer = infer(client, tensor("text", *TEXTS), parameters=parameters)
    assert outputs_of(answer) == expected
    # Options may be tensors as well, one for each row.
    beams = tensor("beam_size", 1, 2, 3, 4, datatype="INT32")
    parameters = {"signature_name": "translate"}
    _, answer = infer(client, tensor("text", *TEXTS), beams, parameters=parameters)
    expected = predicted(client, "translate", text=TEXTS, beam_size=[1, 2, 3, 4])
    assert outputs_of(answer) == expected


def test_outputs_are_given_in_the_order_in_which_they_are_asked_for(client):
    parameters = {"signature_name": "nbest"}
    for names in (["translations", "scores"], ["scores", "translations"], ["translations"]):
        outputs = [{"name": name} for name in names]
        _, answer = infer(client, tensor("text", "a"), parameters=parameters, outputs=outputs)
        assert [output["name"] for output in answer["outputs"]] == names


def test_data_may_be_nested(client):
    inputs = {**tensor("text"), "shape": [2, 1], "data": [["a"], ["b"]]}
    assert infer(client, inputs)[1]["outputs"][0]["data"] == ["A", "B"]
    status, answer = infer(client, {**inputs, "shape": [1, 2]})
    assert status == 400
    assert "has the shape [1, 2]" in answer["error"]


def test_null_is_the_same_as_nothing(client):
    """MLServer's clients write null where a request has nothing."""
    text = tensor("text", *TEXTS)
    expected = infer(client, text)
    assert expected[0] == 200
    nulls = {"id": None, "outputs": None, "parameters": {"timeout": None}}
    assert infer(client, {**text, "parameters": None}, **nulls) == expected
    row = {"text": "a", "beam_size": None}
    nulls = {"signature_name": "translate", "parameters": None, "glossary": None}
    answers = [
        client.post("/v1/models/m:predict", json={**nulls, "instances": [instance]}).json()
        for instance in (row, {"text": "a"})
    ]
    assert answers[0] == answers[1]
    assert "predictions" in answers[0]


def test_bytes_go_in_and_out_behind_the_json(client):
    texts = (b"a", b"\xffb", b"")
    binary = b"".join(struct.pack("<I", len(text)) + text for text in texts)
    inputs = {"name": "text", "datatype": "BYTES", "shape": [3]}
    inputs["parameters"] = {"binary_data_size": len(binary)}
    outputs = [{"name": "length"}, {"name": "text_bytes", "parameters": {"binary_data": True}}]
    document = {"inputs": [inputs], "outputs": outputs, "parameters": {"signature_name": "raw"}}
    head = json.dumps(document).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    answer = client.post(INFER, content=head + binary, headers=headers)
    assert answer.headers["content-type"] == "application/octet-stream"
    length = int(answer.headers["Inference-Header-Content-Length"])
    [sizes, texts] = json.loads(answer.content[:length])["outputs"]
    assert sizes["data"] == [1, 2, 0]
    assert texts["parameters"] == {"binary_data_size": len(binary)}
    assert answer.content[length:] == binary
    # One byte too few or too many is refused.
    for wrong in (binary[:-1], binary + b"x", b""):
        answer = client.post(INFER, content=head + wrong, headers=headers)
        assert (answer.status_code, list(answer.json())) == (400, ["error"])


def test_binary_answers_and_those_of_parts_are_made_beside_the_event_loop(
    exported, start, monkeypatch
):
    loops = set()

    def note(module, name):
        function = getattr(module, name)

        def noted(*arguments):
            loops.add((name, asyncio._get_running_loop()))
            return function(*arguments)

        monkeypatch.setattr(module, name, noted)

    note(binary_tensors, "to_bytes")
    note(np, "concatenate")
    with start(exported / "m", max_memory_bytes=40_000_000) as client:
        document = {"inputs": [tensor("text", *["a"] * 9)]}
        document["parameters"] = {"binary_data_output": True}
        answer = client.post(INFER, json=document)
    assert answer.content.endswith(b"\1\0\0\0A" * 9)
    assert loops == {("to_bytes", None), ("concatenate", None)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": []}, "at least one tensor"),
        ({"inputs": [tensor("text", "a"), tensor("text", "a")]}, "each name once"),
        ({"inputs": [tensor("other", "a")]}, "no input `other`. It has: text"),
        ({"inputs": [tensor("text", 1, datatype="INT32")]}, "datatype of `text` must be BYTES"),
        ({"inputs": [{**tensor("text", "a"), "shape": [2]}]}, "shape [2], of 2 elements"),
        ({"inputs": [{**tensor("text", "a"), "shape": [-1]}]}, "must be a list of sizes"),
        ({"inputs": [{**tensor("text"), "shape": [0, 2**31 - 1] * 4}]}, "has the shape"),
        ({"inputs": [{**tensor("text"), "shape": [0] * 9}]}, "must be a list of sizes"),
        ({"parameters": {"beam_size": 2}}, "no parameter `beam_size`"),
        ({"parameters": {"signature_name": "translate", "beam_size": "2"}}, "expected type: int32"),
        ({"parameters": {"signature_name": "none"}}, "not found in signature def"),
        *(
            ({"outputs": [{**TRANSLATION, "parameters": {"binary_data": value}}]}, "true or false")
            for value in (0, 1, 1.0)
        ),
        ({"parameters": {"timeout": True}}, "must be of type int"),
        ({"parameters": {"timeout": -1}}, "at least 0 microseconds"),
        ({"parameters": {"sequence_id": 4}}, "no parameter `sequence_id`"),
        ({"outputs": [{"name": "scores"}]}, "no output `scores`"),
        ({"outputs": [{**TRANSLATION, "parameters": {"classification": 3}}]}, "not supported"),
        ({"inputs": [{**TRANSLATION, "parameters": {"binary_data_size": 10**99}}]}, f"{10**79}."),
        ({"id": 7}, '"id" must be a string'),
        ({"parameters": {"glossary": {f"{n}": "a" for n in range(5001)}}}, "at most 5,000 terms"),
        ({"parameters": {"glossary": {"a": "b" * 501}}}, "the longest of 501"),
        (
            {"inputs": [tensor("text", "a" * 5001)], "parameters": {"glossary": {"a": "b"}}},
            "`text` must be no longer than 5,000 bytes. Received: 5,001",
        ),
        # The marks of a glossary lengthen the text.
        (
            {"inputs": [tensor("text", "a " * 20)], "parameters": {"glossary": {"a": "b" * 300}}},
            "`text` must be no longer than 5,000 bytes. Received: 6,140",
        ),
    ],
)
def test_a_wrong_request_is_refused_with_its_cause(client, change, words):
    answer = client.post(INFER, json={"inputs": [tensor("text", "a")], **change})
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert words in answer.json()["error"]


def test_limits_and_time_hold_for_both_protocols(exported, start):
    with start(exported / "m", max_batch_size=2, max_text_bytes=4) as client:
        assert infer(client, tensor("text", *"abc"))[0] == 400
        assert infer(client, tensor("text", "abcde"))[0] == 400
        model = client.service.versions._current.model
        run, gate = model.run, threading.Event()
        model.run = lambda *arguments: gate.wait() and run(*arguments)
        try:
            status, answer = infer(client, tensor("text", "a"), parameters={"timeout": 1000})
            assert status == 504
            assert "timeout, 0.001 s" in answer["error"]
            assert infer(client, tensor("text", "a"), headers={"grpc-timeout": "1m"})[0] == 504
        finally:
            gate.set()
        assert infer(client, tensor("text", "a"), parameters={"timeout": 10**9})[0] == 200


def test_requests_of_both_protocols_share_a_batch(exported, start):
    rows = []
    # Two rows fill a batch: it does not wait for an hour.
    with start(exported / "m", max_batch_size=2, batch_timeout_micros=3600 * 10**6) as client:
        client.service.batcher.on_batch = rows.append

        async def ask():
            body = json.dumps({"instances": ["a"]}).encode()
            inference = json.dumps({"inputs": [tensor("text", "b")]}).encode()
            return await asyncio.gather(
                client.service.predict("m", None, body, {}),
                client.service.infer("m", None, inference, None, {}),
            )

        first, (second, _) = asyncio.run(ask())
    assert json.loads(b"".join(first)) == {"predictions": ["A"]}
    assert json.loads(b"".join(second))["outputs"] == [tensor("translation", "B")]
    assert rows == [2]


@pytest.fixture
def triton(client):
    http = pytest.importorskip("tritonclient.http")
    with http.InferenceServerClient(str(client.base_url).removeprefix("http://")) as triton:
        yield http, triton


def test_triton_s_client_finds_the_model_and_understands_its_errors(triton):
    http, triton = triton
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready("m", "1")
    assert not triton.is_model_ready("m", "2")
    assert "binary_tensor_data" in triton.get_server_metadata()["extensions"]
    about = triton.get_model_metadata("m", query_params={"signature_name": "nbest"})
    assert [output["name"] for output in about["outputs"]] == ["scores", "translations"]
    text = http.InferInput("text", [1], "BYTES")
    text.set_data_from_numpy(np.array([b"fail"], object))
    with pytest.raises(Exception, match=r"\[400\] .*this text fails"):
        triton.infer("m", [text])


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False, None])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_triton_s_client_gets_what_curl_gets(client, triton, binary_in, binary_out, compression):
    http, triton = triton
    array = np.array([text.encode() for text in TEXTS], object)
    text = http.InferInput("text", [len(TEXTS)], "BYTES")
    text.set_data_from_numpy(array, binary_data=binary_in)
    beam = http.InferInput("beam_size", [1], "INT32")
    beam.set_data_from_numpy(np.array([3], np.int32), binary_data=binary_in)
    outputs = binary_out is not None and [
        http.InferRequestedOutput(name, binary_data=binary_out)
        for name in ("scores", "translations")
    ]
    answer = triton.infer(
        "m",
        [text, beam],
        outputs=outputs or None,
        request_id="x",
        parameters={"signature_name": "translate", "num_hypotheses": 2},
        request_compression_algorithm=compression,
        timeout=60 * 10**6,
    )
    expected = predicted(client, "translate", text=TEXTS, beam_size=3, num_hypotheses=2)
    assert answer.get_response()["id"] == "x"
    scores = answer.as_numpy("scores")
    assert (scores.dtype, scores.tolist()) == (np.float32, expected["scores"])
    rows = answer.as_numpy("translations")
    lines = [[line if isinstance(line, str) else line.decode() for line in row] for row in rows]
    assert lines == expected["translations"]


# TF Serving's protocol.
PREDICT = "/v1/models/m:predict"
JAPANESE = '日本語 😀 "quoted" \\ / \u00e4'
NBEST = {"signature_name": "nbest"}
BOTH = ["ZWEI HUNDE", "Zwei Hunde"]
SCORES = [-0.2, -float("inf")]

# Bodies, with the answers that were recorded from TF Serving; the translations are this model's.
ANSWERED = {
    "rows": (
        {"instances": ["Ein Mann.", "Zwei Hunde."]},
        {"predictions": ["EIN MANN.", "ZWEI HUNDE."]},
    ),
    "a column": ({"inputs": ["Ein Mann."]}, {"outputs": ["EIN MANN."]}),
    "a named column": ({"inputs": {"text": ["Ein Mann."]}}, {"outputs": ["EIN MANN."]}),
    "a named row": ({"instances": [{"text": "Zwei Hunde"}]}, {"predictions": ["ZWEI HUNDE"]}),
    "base64": ({"instances": [{"b64": "WndlaSBIdW5kZQ=="}]}, {"predictions": ["ZWEI HUNDE"]}),
    "two outputs in rows": (
        {**NBEST, "instances": ["Zwei Hunde"]},
        {"predictions": [{"translations": BOTH, "scores": SCORES}]},
    ),
    "two outputs in columns": (
        {**NBEST, "inputs": ["Zwei Hunde"]},
        {"outputs": {"scores": [SCORES], "translations": [BOTH]}},
    ),
    "an empty column": ({"inputs": []}, {"outputs": []}),
    "a value for a column": ({"inputs": "Zwei Hunde"}, {"outputs": ["ZWEI HUNDE"]}),
    "a list in a row": ({"instances": [["Zwei Hunde"]]}, {"predictions": ["ZWEI HUNDE"]}),
    "any character": (
        {"instances": ["", JAPANESE]},
        {"predictions": ["", JAPANESE.replace("quoted", "QUOTED")]},
    ),
}
REFUSED = {
    "no rows": (
        '{"instances": []}',
        "JSON Value: {\n    \"instances\": []\n} No values in 'instances' array",
    ),
    "a number": (
        '{"instances": [1]}',
        "Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: "
        "JSON Value: 1 Type: Number is not of expected type: string",
    ),
    "another signature": (
        '{"signature_name": "nope", "instances": ["x"]}',
        'Serving signature name: "nope" not found in signature def',
    ),
    "no inputs": ('{"x": 1}', "Missing 'inputs' or 'instances' key"),
    "both": (
        '{"instances": ["a"], "inputs": ["a"]}',
        'JSON Value: {\n    "instances": ["a"],\n    "inputs": ["a"]\n} Not formatted correctly '
        "expecting only one of "
        "'inputs' or 'instances' keys to exist ",
    ),
    "no JSON": ("not json", "JSON Parse error: Expecting value at offset: 0"),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_a_recorded_body_is_answered_as_tf_serving_does(client, name):
    body, answer = ANSWERED[name]
    response = client.post(PREDICT, content=json.dumps(body))
    assert (response.status_code, response.json()) == (200, answer)
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("name", REFUSED)
def test_a_recorded_body_is_refused_as_tf_serving_does(client, name):
    body, error = REFUSED[name]
    response = client.post(PREDICT, content=body)
    assert (response.status_code, response.json()) == (400, {"error": error})


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/models/m/versions/1", "/v1/models/m/VERSIONS/1", "/V1/MODELS/m/Versions/1"),
        *("/V1/models/m", "/v1/Models/m", "/V1/Models/m"),
    ],
)
def test_a_path_in_another_case_is_the_same_path(client, path):
    response = client.post(f"{path}:predict", json={"instances": ["a"]})
    assert (response.status_code, response.json()) == (200, {"predictions": ["A"]})
    for tail in ("", "/metadata"):
        assert client.get(path + tail).status_code == 200
        assert client.get(path + tail).json() == client.get(path.lower() + tail).json()


NO_SERVABLE = "Servable not found for request"
NO_LABEL = "Unrecognized servable version label"


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("POST", "/V1/Models/M:predict", 404, f"{NO_SERVABLE}: Latest(M)"),
        ("POST", "/v1/models/m/versions/7:predict", 404, f"{NO_SERVABLE}: Specific(m, 7)"),
        ("POST", "/v1/models/m/Labels/Stable:predict", 400, f"{NO_LABEL}: Stable"),
        ("GET", "/v1/models/x", 404, "Could not find any versions of model x"),
        ("GET", "/v1/models/m/versions/7", 404, "Could not find version 7 of model m"),
        ("GET", "/v1/models/x/metadata", 404, f"{NO_SERVABLE}: Latest(x)"),
        *(
            (method, f"/{path}", 400, f"Malformed request: {method} /{path}")
            for method, path in [
                ("POST", "V1/models/m:frob"),
                ("POST", "v1/models/m:PREDICT"),
                ("POST", "v1/models/m/versions/one:predict"),
                ("GET", "v1/models"),
            ]
        ),
    ],
)
def test_an_unknown_model_or_path_is_refused_as_by_tf_serving(client, method, path, status, error):
    response = client.request(method, path, content='{"instances": ["a"]}')
    assert (response.status_code, response.json()) == (status, {"error": error})


@pytest.mark.parametrize("path", ["/v1/models/m", "/v1/models/m/versions/1"])
def test_the_status_is_tf_serving_s_message(client, path):
    json_format = pytest.importorskip("google.protobuf.json_format")
    messages = pytest.importorskip("tensorflow_serving.apis.get_model_status_pb2")
    message = messages.GetModelStatusResponse()
    message.model_version_status.add(
        version=1, state=messages.ModelVersionStatus.AVAILABLE
    ).status.error_code = 0
    assert client.get(path).json() == json_format.MessageToDict(
        message, always_print_fields_with_no_presence=True
    )


@pytest.mark.parametrize("path", ["/v1/models/m/metadata", "/v1/models/m/versions/1/metadata"])
def test_the_metadata_are_tf_serving_s_message(client, exported, path):
    json_format = pytest.importorskip("google.protobuf.json_format")
    metadata = pytest.importorskip("tensorflow_serving.apis.get_model_metadata_pb2")
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel.FromString(
        (exported / "m" / "1" / "saved_model.pb").read_bytes()
    )
    expected = metadata.SignatureDefMap()
    for name, signature in model.meta_graphs[0].signature_def.items():
        expected.signature_def[name].CopyFrom(signature)
    answer = client.get(path).json()
    assert answer["model_spec"] == {"name": "m", "signature_name": "", "version": "1"}
    definitions = answer["metadata"]["signature_def"]
    # Fields have the names of the message, which another reader may insist on.
    assert "method_name" in definitions["signature_def"]["serving_default"]
    assert json_format.ParseDict(definitions, metadata.SignatureDefMap()) == expected


def test_bytes_go_in_and_come_out_as_base64(client):
    original = bytes(range(256))
    body = {"signature_name": "raw", "instances": [{"b64": base64.b64encode(original).decode()}]}
    [answer] = client.post(PREDICT, json=body).json()["predictions"]
    assert base64.b64decode(answer["text_bytes"]["b64"]) == original
    assert answer["length"] == 256
