"""HTTP features of every path: bodies of gzip, time limits, clients that leave, HEAD, upper case,
absolute URIs, and requests from pages of other sites (CORS).
"""

import asyncio
import itertools
import logging
import re
import time
import zlib
from collections.abc import Callable, Coroutine, Iterable, Mapping

from starlette.background import BackgroundTask
from starlette.convertors import IntegerConvertor, StringConvertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from keras_transformer.server import monitoring
from keras_transformer.server.options import RequestError, ServeOptions

BODY_SECONDS = 60
# Answers of at most so many bytes are sent whole, with their length.
WHOLE = 2**18
# Names of gzip, and of bodies that are not encoded.
GZIP = ("gzip", "x-gzip")
PLAIN = ("", "identity")
# zlib reads gzip's header and checks its checksum.
GZIP_BITS = 16 + zlib.MAX_WBITS
# Headers with a time limit, of gRPC and of Envoy; Envoy's is in milliseconds.
GRPC = "grpc-timeout"
ENVOY = "x-envoy-expected-rq-timeout-ms"
SECONDS = {"H": 3600, "M": 60, "S": 1, "m": 1e-3, "u": 1e-6, "n": 1e-9}
# TF Serving matches its paths in any case, but then compares these two methods exactly.
ROOT = "/v1/"
EXACT = ("predict", "metadata")
NAME = "[^/:]+"
CORS = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"POST, GET"),
    (b"access-control-allow-headers", b"Content-Type"),
)


async def read_body(request: Request, most: int) -> bytes:
    """Read a request's body, of at most `most` bytes both as received and as inflated."""
    refusal = RequestError(f"The request must be no longer than {most:,} bytes.", 413)
    encoding = ",".join(request.headers.getlist("content-encoding")).strip().lower()
    if encoding not in (*GZIP, *PLAIN):
        raise RequestError(
            f"Content-Encoding must be gzip, or left out. Received: {encoding[:100]}.", 415
        )
    if int(request.headers.get("content-length", 0)) > most:
        raise refusal
    inflater = _Inflater() if encoding in GZIP else None
    received = 0
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                received += len(chunk)
                if inflater and chunk:
                    # In a thread: a megabyte of empty members takes half a second.
                    chunk = await asyncio.to_thread(inflater.inflated, chunk, most + 1 - len(body))
                body += chunk
                if max(received, len(body)) > most:
                    raise refusal
    except TimeoutError as error:
        raise RequestError(
            f"The request's body did not arrive within {BODY_SECONDS} seconds."
        ) from error
    if inflater and not inflater.is_whole:
        raise RequestError("The gzip body is incomplete. Send all of it.")
    return bytes(body)


class _Inflater:
    """Inflates a gzip file of one member or several, piece by piece."""

    def __init__(self):
        self._member = zlib.decompressobj(GZIP_BITS)

    @property
    def is_whole(self):
        return self._member.eof

    def inflated(self, chunk, most):
        """Inflate a chunk, to no more than `most` bytes."""
        inflated = bytearray()
        try:
            while chunk and len(inflated) < most:
                if self._member.eof:
                    self._member = zlib.decompressobj(GZIP_BITS)
                inflated += self._member.decompress(chunk, most - len(inflated))
                chunk = self._member.unused_data
        except zlib.error as error:
            raise RequestError(
                f"The body is not gzip, as its Content-Encoding says: {error}."
            ) from error
        return inflated


def seconds(headers: Mapping[str, str], most_ms: int) -> float:
    """Return a request's time limit: the least of those of its headers and `most_ms`."""
    times = [most_ms / 1e3]
    for name, pattern in ((GRPC, r"(\d{1,8})([HMSmun])"), (ENVOY, r"(\d{1,12})()")):
        if name in headers:
            match = re.fullmatch(pattern, headers[name], re.ASCII)
            if match is None:
                raise RequestError(
                    f"The header {name} must be a time such as "
                    f"{'500m or 30S' if name == GRPC else '500'}. Received: {headers[name]!r}."
                )
            times.append(int(match[1]) * SECONDS.get(match[2], 1e-3))
    return min(times)


async def within(limit: float, request: Request, work: Coroutine):
    """Return the result of some work. It is cancelled after `limit` seconds (RequestError 504) or
    when the client leaves (ClientDisconnect).
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnection(request))
    try:
        finished, _ = await asyncio.wait(
            {working, leaving}, timeout=limit, return_when=asyncio.FIRST_COMPLETED
        )
        if working in finished:
            return working.result()
        if leaving in finished:
            raise ClientDisconnect
        # The message is TensorFlow's, and so TF Serving's.
        raise RequestError(
            f"Timed out waiting for notification: it took longer than {limit:g} s.", 504
        )
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnection(request):
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def respond(
    request: Request, work: Callable, options: ServeOptions, counters: monitoring.Metrics
) -> Response:
    """Answer, count and log a request. `work` takes its body and a dictionary, to which it adds
    what may be logged of the request; it returns the answer in pieces, and its headers.
    """
    details = {"signature": "unknown"}
    status = 500
    began = time.perf_counter()
    try:
        body = await read_body(request, options.max_request_bytes)
        began = time.perf_counter()
        details["bytes"] = len(body)
        limit = seconds(request.headers, options.request_timeout_ms)
        pieces, headers = await within(limit, request, work(body, details))
        status = 200
        return await _response(pieces, headers)
    except RequestError as error:
        status = error.status
        raise
    except ClientDisconnect:
        status = 499
        return Response(status_code=status)
    finally:
        duration = time.perf_counter() - began
        counters.answered(details["signature"], status, duration)
        monitoring.log("predict", status=status, milliseconds=round(duration * 1e3, 1), **details)


async def _response(pieces, headers):
    """Respond with a short answer whole, or with a long one piece by piece, as the client reads."""

    def parts():
        first = bytearray()
        for piece in pieces:
            first += piece
            if len(first) > WHOLE:
                break
        yield bytes(first)
        yield from pieces

    body = parts()
    first = await asyncio.to_thread(next, body)
    if len(first) <= WHOLE:
        return Response(first, headers=headers)
    # The traceback of a client's leaving refers to the rest, until Python collects its garbage.
    end = BackgroundTask(body.close)
    return StreamingResponse(itertools.chain([first], body), headers=headers, background=end)


class _Name(StringConvertor):
    """A part of a path without a colon, after which the method begins."""

    regex = NAME


class _Number(IntegerConvertor):
    """A version's number, which is 64 bits wide in TF Serving."""

    regex = "[0-9]{1,19}"


# Routes say `{name:model}` and `{version:version}`.
register_url_convertor("model", _Name())
register_url_convertor("version", _Number())


def check_name(name: str) -> None:
    """Refuse a model's name that cannot be part of a URL."""
    if not re.fullmatch(NAME, name):
        raise ValueError(
            f"--model_name must be a name without / and :. Received: {name!r}. Its default is the "
            "name of the folder --model_base_path."
        )


def ignore_case(routes: Iterable[BaseRoute]) -> None:
    """Let TF Serving's routes match in any case, except for `EXACT`. Models' names keep theirs."""
    for route in routes:
        if route.path.startswith(ROOT):
            ends = "|".join(EXACT)
            pattern = re.sub(rf"({ends})\$$", r"(?-i:\1)$", route.path_regex.pattern)
            route.path_regex = re.compile(pattern, re.IGNORECASE | re.ASCII)


def is_of_tf_serving(path: str) -> bool:
    """Whether a path is one of TF Serving's, in any case."""
    return path.lower().startswith(ROOT)


def at_every_path(app: ASGIApp, cors: bool) -> ASGIApp:
    """Wrap an ASGI application that knows only GET, POST and paths. With `cors`, answers at TF
    Serving's paths have its headers for pages of other sites.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # The web server, whose own scope still says HEAD, omits the body.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            scope = {**scope, "method": method, "path": _path(scope["path"])}
            if cors and is_of_tf_serving(scope["path"]):
                send = _with_cors(send)
        try:
            await app(scope, receive, send)
        # Starlette raises an error again after it has answered 500. The web server would then close
        # the connection, on which the client may already send its next request.
        except Exception as error:
            monitoring.log(
                "failed", logging.ERROR, exc_info=(type(error), error, error.__traceback__)
            )

    return answer


def _path(target):
    """Return the path of a request's target, which may be an absolute URI."""
    if target.lower().startswith(("http://", "https://")):
        return "/" + target.partition("://")[2].partition("/")[2]
    return target


def _with_cors(send):
    async def send_with_headers(message):
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *CORS]}
        await send(message)

    return send_with_headers
