"""The OpenAPI document: requests and answers, and what FastAPI cannot see in the routes."""

from typing import Any

import fastapi
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field


class PredictRequest(BaseModel):
    """`instances` (rows) or `inputs` (columns), not both, as the model's metadata have them."""

    signature_name: str = Field("serving_default", description="One of the model's signatures.")
    instances: list[Any] = Field(
        None,
        description='Values, or objects of values by the names of inputs; bytes as {"b64": "..."}.',
    )
    inputs: Any = Field(
        None,
        description="A value or a list for the only input, or an object of lists by the names of "
        "inputs.",
    )


class Predictions(BaseModel):
    """The answer to `instances`: a value, or an object of values by outputs' names, for each."""

    model_config = ConfigDict(extra="forbid")
    predictions: list[Any]


class Outputs(BaseModel):
    """The answer to `inputs`: values, or an object of values by the names of outputs."""

    model_config = ConfigDict(extra="forbid")
    outputs: Any


class Status(BaseModel):
    """What went wrong, if anything."""

    error_code: str
    error_message: str


class VersionStatus(BaseModel):
    """Where a version stands: LOADING, AVAILABLE, UNLOADING or END."""

    version: str
    state: str
    status: Status


class ModelStatus(BaseModel):
    """TF Serving's GetModelStatusResponse."""

    model_version_status: list[VersionStatus]


class ModelMetadata(BaseModel):
    """TF Serving's GetModelMetadataResponse."""

    model_spec: dict[str, str]
    metadata: dict[str, Any]


class Health(BaseModel):
    """Whether requests are answered, and by which versions."""

    ready: bool
    versions: list[int]


class ServerMetadata(BaseModel):
    """The server, as the Open Inference Protocol has it."""

    name: str
    version: str
    extensions: list[str]


class Live(BaseModel):
    """That the server runs."""

    live: bool


class Ready(BaseModel):
    """Whether requests are answered."""

    ready: bool


class ModelReady(Ready):
    """Whether requests to a model are answered."""

    name: str


class Tensor(BaseModel):
    """An input or an output; in metadata without data, and with -1 for a size that is free."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, Any] = Field(
        {}, description="binary_data_size, if the data stand behind the JSON."
    )
    data: list[Any] = Field(None, description="Flat, or nested as the shape says.")


class RequestedOutput(BaseModel):
    """An output that is asked for."""

    name: str
    parameters: dict[str, Any] = Field({}, description="binary_data: true or false.")


class ModelDescription(BaseModel):
    """What a signature takes and gives: the model metadata of the Open Inference Protocol."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    parameters: dict[str, str]


class InferRequest(BaseModel):
    """Tensors of one of the model's signatures."""

    id: str = Field(None, description="Comes back with the answer.")
    parameters: dict[str, Any] = Field(
        {}, description="signature_name, the signature's options, timeout, binary_data_output."
    )
    inputs: list[Tensor]
    outputs: list[RequestedOutput] = Field([], description="All, if there are none.")


class InferResponse(BaseModel):
    """The outputs of a signature."""

    model_name: str
    model_version: str
    id: str = None
    outputs: list[Tensor]


class Error(BaseModel):
    """Every answer that is no success."""

    model_config = ConfigDict(extra="forbid")
    error: str


WORDS = {
    400: "Not as the signature, or a limit, has it.",
    404: "No such model, or version.",
    413: "Too many bytes.",
    415: "A Content-Encoding that is not gzip.",
    503: "Try again later.",
    504: "The time of the request is over.",
}


def _errors(*statuses):
    return {status: {"model": Error, "description": WORDS[status]} for status in statuses}


# What routes say of themselves: those that look for a model, and those that predict.
FINDING = _errors(400, 404)


def _asking(request, answer, **content):
    """What a route says that reads a request itself."""
    schema = {"schema": {"$ref": f"#/components/schemas/{request}"}}
    body = {"required": True, "content": {"application/json": schema}}
    return {
        "responses": {200: {"model": answer, **content}, **_errors(*WORDS)},
        "openapi_extra": {"requestBody": body},
    }


PREDICT = _asking("PredictRequest", Predictions | Outputs)
BINARY = {"application/octet-stream": {}}
INFER = _asking("InferRequest", InferResponse, content=BINARY)
STATUS = {"response_model": ModelStatus, "responses": FINDING}
METADATA = {"response_model": ModelMetadata, "responses": FINDING}
READY = {"response_model": Ready, "responses": {503: {"model": Ready}}}
MODEL_READY = {"response_model": ModelReady, "responses": {404: {"model": ModelReady | Error}}}
DESCRIPTION = {
    "response_model": ModelDescription,
    "response_model_exclude_unset": True,
    "responses": FINDING,
}


def document(app: fastapi.FastAPI) -> dict:
    """FastAPI's document, with the requests that we read ourselves, and without 422."""
    if not app.openapi_schema:
        described = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        for path in described["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        components = described["components"]["schemas"]
        for request in (PredictRequest, InferRequest):
            schema = request.model_json_schema(ref_template="#/components/schemas/{model}")
            components |= {**schema.pop("$defs", {}), request.__name__: schema}
        for unused in ("HTTPValidationError", "ValidationError"):
            components.pop(unused, None)
        app.openapi_schema = described
    return app.openapi_schema
