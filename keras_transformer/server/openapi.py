"""The OpenAPI document: what FastAPI cannot see in the routes."""

import fastapi
from fastapi.openapi.utils import get_openapi

from keras_transformer.server import schemas

WORDS = {
    400: "Not as the signature, or a limit, has it.",
    404: "No such model, or version.",
    413: "Too many bytes.",
    415: "A Content-Encoding that is not gzip.",
    503: "Try again later.",
}


def errors(*statuses):
    return {status: {"model": schemas.Error, "description": WORDS[status]} for status in statuses}


FINDING = errors(400, 404)
PREDICT = {
    "responses": {
        200: {"model": schemas.Predictions | schemas.Outputs},
        **errors(400, 404, 413, 415, 503),
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/PredictRequest"}}
            },
        }
    },
}


def document(app: fastapi.FastAPI) -> dict:
    """FastAPI's document, with the request that we read ourselves, and without the answer 422 that
    we never give.
    """
    if not app.openapi_schema:
        described = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        for operation in [
            operation for path in described["paths"].values() for operation in path.values()
        ]:
            operation["responses"].pop("422", None)
        components = described["components"]["schemas"]
        components["PredictRequest"] = schemas.PredictRequest.model_json_schema()
        for unused in ("HTTPValidationError", "ValidationError"):
            components.pop(unused, None)
        app.openapi_schema = described
    return app.openapi_schema
