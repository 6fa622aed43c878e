"""The shapes of requests and answers, for the OpenAPI document."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class PredictRequest(BaseModel):
    """`instances` (rows) or `inputs` (columns), not both. What a signature takes is in the model's
    metadata.
    """

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
    """The answer to `instances`: a value, or an object of values by the names of outputs, for each
    of them.
    """

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


class Error(BaseModel):
    """Every answer that is no success."""

    model_config = ConfigDict(extra="forbid")
    error: str
