"""The HTTP routes: TF Serving's, the Open Inference Protocol's, health, metrics, the page, and the
OpenAPI document that describes them.
"""

import html
import pathlib
from typing import Annotated

import fastapi
from fastapi import Path, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from keras_transformer import __version__
from keras_transformer.saved_models import versions
from keras_transformer.server import monitoring, open_inference, openapi, to_json, transport
from keras_transformer.server.openapi import PREDICT
from keras_transformer.server.options import RequestError, Vertex
from keras_transformer.server.service import Service

PAGE = pathlib.Path(__file__).with_name("page")
SCRIPTS = ("elements", "attention", "tree", "next_pieces", "text_reading", "pictures", "page")
PROMETHEUS = "/monitoring/prometheus/metrics"
# The page is self-contained: a browser must fetch nothing from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src "
    "'self'; img-src data:; base-uri 'none'; form-action 'none'"
)
V1 = "/v1"
V2 = "/v2"
MODEL = "/models/{name:model}"
JSON = {"Content-Type": "application/json"}
Name = Annotated[str, Path(description="The model's name.", pattern="^[^/:]+$")]
Number = Annotated[
    int,
    Path(description="The version's number.", ge=0, json_schema_extra={"maximum": versions.MOST}),
]


async def newest_version():
    return None


async def version_in_path(version: Number):
    return version


# A model's routes exist twice: the suffix of its path, which version that is, and its number.
BY_VERSION = (
    ("", "the newest version", fastapi.Depends(newest_version)),
    ("/versions/{version:version}", "one version", fastapi.Depends(version_in_path)),
)


def build(service: Service, cors: bool, vertex: Vertex) -> ASGIApp:
    """Build the ASGI application of a service. `cors` admits requests from pages of other sites;
    `vertex` has the paths that Vertex AI calls.
    """
    app = fastapi.FastAPI(
        title="keras_transformer.serve",
        version="1",
        description="TF Serving's REST, and the Open Inference Protocol.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.openapi = lambda: openapi.document(app)
    counters = monitoring.Metrics(
        lambda: service.batcher.depth, lambda: len(service.versions.available())
    )
    service.batcher.on_batch = counters.batch_run
    _add_error_handlers(app)
    # First: Vertex AI's paths may equal those of our other routes, or name another model.
    _add_predict_routes(app, service, counters, vertex)
    _add_server_routes(app, service, counters, vertex)
    _add_model_routes(app, service)
    _add_open_inference_routes(app, service, counters)
    transport.ignore_case(app.routes)
    return transport.at_every_path(app, cors)


def _add_predict_routes(app, service, counters, vertex):
    if vertex.predict:

        @app.post(vertex.predict, include_in_schema=False)
        async def predict_for_vertex(request: Request):
            return await answer(request, service.name, None)

    for suffix, label, number in BY_VERSION:

        @app.post(f"{V1}{MODEL}{suffix}:predict", summary=f"Translate, by {label}", **PREDICT)
        async def predict(name: Name, request: Request, version=number):
            return await answer(request, name, version)

    async def answer(request, name, version):
        async def work(body, details):
            return await service.predict(name, version, body, details), JSON

        return await transport.respond(request, work, service.options, counters)


def _add_open_inference_routes(app, service, counters):
    """Add the routes of the Open Inference Protocol, version 2."""

    @app.get(V2, summary="The server and its extensions", response_model=openapi.ServerMetadata)
    async def server():
        return {"name": app.title, "version": __version__, "extensions": open_inference.EXTENSIONS}

    @app.get(V2 + "/health/live", summary="Whether the server runs", response_model=openapi.Live)
    async def live():
        return {"live": True}

    @app.get(V2 + "/health/ready", summary="Whether it answers", **openapi.READY)
    async def ready():
        is_ready = service.is_ready(service.name)
        return JSONResponse({"ready": is_ready}, status_code=200 if is_ready else 503)

    for suffix, label, number in BY_VERSION:
        base = f"{V2}{MODEL}{suffix}"

        @app.get(base, summary=f"Inputs and outputs of {label}", **openapi.DESCRIPTION)
        async def described(name: Name, signature_name: str | None = None, version=number):
            return service.description(name, version, signature_name)

        @app.get(base + "/ready", summary=f"Whether {label} is served", **openapi.MODEL_READY)
        async def model_ready(name: Name, version=number):
            is_ready = service.is_ready(name, version)
            body = {"name": name, "ready": is_ready}
            return JSONResponse(body, status_code=200 if is_ready else 404)

        @app.post(base + "/infer", summary=f"Infer by {label}", **openapi.INFER)
        async def infer(request: Request, name: Name, version=number):
            async def work(body, details):
                length = request.headers.get(open_inference.HEADER)
                return await service.infer(name, version, body, length, details)

            return await transport.respond(request, work, service.options, counters)


def _add_model_routes(app, service):
    for suffix, label, number in BY_VERSION:
        base = f"{V1}{MODEL}{suffix}"

        @app.get(base, summary="States of all versions, or of one", **openapi.STATUS)
        async def status(name: Name, version=number):
            return JSONResponse(service.status(name, version))

        @app.get(base + "/metadata", summary=f"Signatures of {label}", **openapi.METADATA)
        async def metadata(name: Name, version=number):
            return JSONResponse(service.metadata(name, version))

    by_label = f"{V1}{MODEL}/labels/{{label:model}}{{rest:path}}"

    @app.api_route(by_label, methods=["GET", "POST"], include_in_schema=False)
    async def labels(label: str):
        raise RequestError(f"Unrecognized servable version label: {label}")


def _add_server_routes(app, service, counters, vertex):
    # One document: its style and scripts are inlined.
    page = (PAGE / "page.html").read_text(encoding="utf-8")
    scripts = [(PAGE / f"{script}.js").read_text(encoding="utf-8") for script in SCRIPTS]
    page = page.replace("{{model}}", html.escape(service.name))
    page = page.replace("{{style}}", (PAGE / "page.css").read_text(encoding="utf-8"))
    page = page.replace("{{script}}", "\n".join(scripts))

    @app.get(vertex.health or "/health", include_in_schema=False)
    @app.get(
        "/health",
        summary="Whether requests are answered",
        response_model=openapi.Health,
        responses={503: {"model": openapi.Health}},
    )
    async def health():
        served = service.versions.available()
        return JSONResponse(
            {"ready": bool(served), "versions": served}, status_code=200 if served else 503
        )

    @app.get("/", response_class=HTMLResponse, summary="A page to try the model on")
    async def show_page():
        return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})

    as_text = {"response_class": Response, "responses": {200: {"content": {"text/plain": {}}}}}

    @app.get("/metrics", summary="Counters, for Prometheus", **as_text)
    @app.get(PROMETHEUS, summary="The same, where TF Serving has them", **as_text)
    async def show_metrics():
        return Response(counters.page(), media_type=counters.content_type)


def _add_error_handlers(app):
    """Answer every error as TF Serving does: with an object of one key."""

    @app.exception_handler(RequestError)
    async def refused(request, error):
        return _error(error.status, error.message)

    @app.exception_handler(HTTPException)
    async def not_routed(request, error):
        path = request.url.path
        if error.status_code == 405 and request.method == "OPTIONS":
            methods = {*error.headers["Allow"].split(", "), "OPTIONS"}
            methods |= {"HEAD"} if "GET" in methods else set()
            return Response(headers={"Allow": ", ".join(sorted(methods))})
        if error.status_code == 404 and transport.is_of_tf_serving(path):
            return _error(400, f"Malformed request: {request.method} {path}")
        return _error(error.status_code, f"{error.detail}: {request.method} {path}", error.headers)

    @app.exception_handler(Exception)
    async def failed(request, error):
        return _error(500, "The server failed. Its log says where.")


def _error(status, message, headers=None):
    return Response(
        to_json.encode({"error": message}), status, headers, media_type="application/json"
    )
