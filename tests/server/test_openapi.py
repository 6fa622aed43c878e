"""The server does what its OpenAPI document says: schemathesis draws requests from the document and
checks the answers.

`SCHEMATHESIS_EXAMPLES=1000 make test-slow` draws 1,000 requests for each operation.
"""

import os

import pytest
from hypothesis import given, settings
from hypothesis.errors import Unsatisfiable

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("schemathesis")

import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

FEW = 4
MANY = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "15"))
ERRORS = {"400", "404", "413", "415", "503", "504"}


@pytest.fixture(scope="module")
def small(exported, start):
    """A client of a server whose limits are soon reached."""
    with start(
        exported / "m", max_batch_size=3, max_text_bytes=20, max_request_bytes=2000
    ) as client:
        yield client


@pytest.fixture(scope="module")
def operations(small):
    # Wrong data may also be too long: by default schemathesis counts no 413 as a refusal.
    refusals = {"negative_data_rejection": {"expected-statuses": ["400", "404", "405", "413"]}}
    document = schemathesis.openapi.from_url(
        f"{small.base_url}/openapi.json", config=schemathesis.Config.from_dict({"checks": refusals})
    )
    return [operation.ok() for operation in document.get_all_operations()]


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_the_server_does_what_its_document_says(operations, mode, examples):
    for operation in operations:

        @settings(settings.get_profile("the same each time"), max_examples=examples)
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case):
            # The document does not know the model's signatures: what it allows may be refused.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

        try:
            ask()
        except Unsatisfiable:  # no request is wrong where nothing is sent
            assert mode is schemathesis.GenerationMode.NEGATIVE


def test_the_document_has_every_url_and_every_answer(client, operations):
    assert len(operations) == 19
    document = client.get("/openapi.json").json()
    paths = document["paths"]
    model, version = "/v1/models/{name}", "/v1/models/{name}/versions/{version}"
    model_2, version_2 = (path.replace("v1", "v2") for path in (model, version))
    assert paths.keys() == {
        "/",
        "/health",
        "/metrics",
        "/monitoring/prometheus/metrics",
        *(base + tail for base in (model, version) for tail in ("", ":predict", "/metadata")),
        *("/v2", "/v2/health/live", "/v2/health/ready"),
        *(base + tail for base in (model_2, version_2) for tail in ("", "/ready", "/infer")),
    }
    for base in (model, version):
        assert paths[f"{base}:predict"]["post"]["responses"].keys() == {"200", *ERRORS}
    for base in (model_2, version_2):
        assert paths[f"{base}/infer"]["post"]["responses"].keys() == {"200", *ERRORS}
    names = {"PredictRequest", "Predictions", "Outputs", "Error", "ModelStatus", "ModelMetadata"}
    assert names <= document["components"]["schemas"].keys()
    assert "422" not in str(document)
