"""What TF Serving's own code answered to 17 bodies, and what its URLs give, is what our server
gives.
"""

import base64
import json

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

PREDICT = "/v1/models/m:predict"
JAPANESE = '日本語 😀 "quoted" \\ / \u00e4'
NBEST = {"signature_name": "nbest"}
BOTH = ["ZWEI HUNDE", "Zwei Hunde"]
SCORES = [-0.2, -float("inf")]

# Each body, and the answer: as recorded from TF Serving, but for the translations, which are this
# model's.
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


@pytest.mark.parametrize("which", ANSWERED)
def test_a_recorded_body_is_answered_as_tf_serving_does(client, which):
    body, answer = ANSWERED[which]
    response = client.post(PREDICT, content=json.dumps(body))
    assert (response.status_code, response.json()) == (200, answer)
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("which", REFUSED)
def test_a_recorded_body_is_refused_as_tf_serving_does(client, which):
    body, error = REFUSED[which]
    response = client.post(PREDICT, content=body)
    assert (response.status_code, response.json()) == (400, {"error": error})


# A version is asked by its number.
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
def test_what_there_is_none_of_is_refused_as_tf_serving_does(client, method, path, status, error):
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
    said = answer["metadata"]["signature_def"]
    # Fields have the names of the message, which another reader may insist on.
    assert "method_name" in said["signature_def"]["serving_default"]
    found = json_format.ParseDict(said, metadata.SignatureDefMap())
    assert found == expected


def test_numbers_have_the_digits_that_mean_a_float32(client):
    told = client.post(PREDICT, json={**NBEST, "instances": ["a"]}).content
    assert b'"scores": [-0.2,-Infinity]' in told


def test_bytes_go_in_and_come_out_as_base64(client):
    sent = bytes(range(256))
    body = {"signature_name": "raw", "instances": [{"b64": base64.b64encode(sent).decode()}]}
    [answer] = client.post(PREDICT, json=body).json()["predictions"]
    assert base64.b64decode(answer["text_bytes"]["b64"]) == sent
    assert answer["length"] == 256


def test_an_output_that_is_not_utf_8_is_replaced(client):
    body = {"instances": [{"b64": base64.b64encode(b"a\xff").decode()}]}
    [answer] = client.post(PREDICT, json={**NBEST, **body}).json()["predictions"]
    assert answer["translations"][1] == "a\ufffd"
