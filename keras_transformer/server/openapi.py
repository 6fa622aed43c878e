"""The OpenAPI document: schemas of requests and answers, and what FastAPI cannot infer itself."""

from typing import Any

import fastapi
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict, Field


class PredictRequest(BaseModel):
    """Either `instances` (rows) or `inputs` (columns), as the model's metadata describe them."""

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
    """The answer to `instances`: for each a value, or an object of values by names of outputs."""

    model_config = ConfigDict(extra="forbid")
    predictions: list[Any]


class Outputs(BaseModel):
    """The answer to `inputs`: values, or an object of values by the names of outputs."""

    model_config = ConfigDict(extra="forbid")
    outputs: Any


class Status(BaseModel):
    """An error, or code OK and no message."""

    error_code: str
    error_message: str


class VersionStatus(BaseModel):
    """The state of a version: LOADING, AVAILABLE, UNLOADING or END."""

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
    """The Open Inference Protocol's metadata of the server."""

    name: str
    version: str
    extensions: list[str]


class Live(BaseModel):
    """Whether the server runs."""

    live: bool


class Ready(BaseModel):
    """Whether requests are answered."""

    ready: bool


class ModelReady(Ready):
    """Whether requests to a model are answered."""

    name: str


class Tensor(BaseModel):
    """An input or an output. In metadata it has no data, and sizes that are free are -1."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, Any] = Field(
        {}, description="binary_data_size, if the data follow the JSON as bytes."
    )
    data: list[Any] = Field(None, description="Flat, or nested as the shape says.")


class RequestedOutput(BaseModel):
    """An output to return."""

    name: str
    parameters: dict[str, Any] = Field({}, description="binary_data: true or false.")


class ModelDescription(BaseModel):
    """Inputs and outputs of a signature: the Open Inference Protocol's metadata of a model."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    parameters: dict[str, str]


class InferRequest(BaseModel):
    """Inputs for one of the model's signatures."""

    id: str = Field(None, description="The answer repeats it.")
    parameters: dict[str, Any] = Field(
        {}, description="signature_name, the signature's options, timeout, binary_data_output."
    )
    inputs: list[Tensor]
    outputs: list[RequestedOutput] = Field([], description="Outputs to return. Default: all.")


class InferResponse(BaseModel):
    """The outputs of a signature."""

    model_name: str
    model_version: str
    id: str = None
    outputs: list[Tensor]


class Error(BaseModel):
    """The answer to a request that failed."""

    model_config = ConfigDict(extra="forbid")
    error: str


ERRORS = {
    400: "The request does not match the signature, or exceeds a limit.",
    404: "There is no such model or version.",
    413: "The request has too many bytes.",
    415: "The Content-Encoding is not gzip.",
    503: "The server is busy. Try again later.",
    504: "The request took longer than its time limit.",
}


def _errors(*statuses):
    return {status: {"model": Error, "description": ERRORS[status]} for status in statuses}


# Errors of routes that name a model.
NO_MODEL = _errors(400, 404)


def _operation(request, answer, **content):
    """Return the arguments of a route that parses its body, of the schema `request`, itself."""
    schema = {"schema": {"$ref": f"#/components/schemas/{request}"}}
    body = {"required": True, "content": {"application/json": schema}}
    return {
        "responses": {200: {"model": answer, **content}, **_errors(*ERRORS)},
        "openapi_extra": {"requestBody": body},
    }


PREDICT = _operation("PredictRequest", Predictions | Outputs)
BINARY = {"application/octet-stream": {}}
INFER = _operation("InferRequest", InferResponse, content=BINARY)
STATUS = {"response_model": ModelStatus, "responses": NO_MODEL}
METADATA = {"response_model": ModelMetadata, "responses": NO_MODEL}
READY = {"response_model": Ready, "responses": {503: {"model": Ready}}}
MODEL_READY = {"response_model": ModelReady, "responses": {404: {"model": ModelReady | Error}}}
DESCRIPTION = {
    "response_model": ModelDescription,
    "response_model_exclude_unset": True,
    "responses": NO_MODEL,
}


def document(app: fastapi.FastAPI) -> dict:
    """Return FastAPI's document, with the bodies that we parse ourselves, and without error 422."""
    if not app.openapi_schema:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        components = schema["components"]["schemas"]
        for request in (PredictRequest, InferRequest):
            body = request.model_json_schema(ref_template="#/components/schemas/{model}")
            components |= {**body.pop("$defs", {}), request.__name__: body}
        for unused in ("HTTPValidationError", "ValidationError"):
            components.pop(unused, None)
        app.openapi_schema = schema
    return app.openapi_schema
