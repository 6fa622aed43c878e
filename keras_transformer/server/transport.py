"""What HTTP clients may do at every path: send gzip, ask for less time, leave, use HEAD, upper case
or an absolute URI, and ask from pages of other sites (CORS).
"""

import asyncio
import itertools
import logging
import re
import time
import zlib
from collections.abc import Callable, Coroutine, Iterable, Mapping

from starlette.convertors import IntegerConvertor, StringConvertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from keras_transformer.server import monitoring
from keras_transformer.server.options import RequestError, ServeOptions

BODY_SECONDS = 60
# Bytes of an answer that are sent with its length.
WHOLE = 2**18
# Names of gzip, and of bytes as they are.
GZIP = ("gzip", "x-gzip")
PLAIN = ("", "identity")
# zlib reads gzip's header and checks its checksum.
GZIP_BITS = 16 + zlib.MAX_WBITS
# What clients and proxies say of their time: gRPC, and Envoy, in milliseconds.
GRPC = "grpc-timeout"
ENVOY = "x-envoy-expected-rq-timeout-ms"
SECONDS = {"H": 3600, "M": 60, "S": 1, "m": 1e-3, "u": 1e-6, "n": 1e-9}
# TF Serving's paths ignore upper and lower case. It finds these two in upper case, too, and then
# compares them letter by letter.
ROOT = "/v1/"
EXACT = ("predict", "metadata")
NAME = "[^/:]+"
CORS = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"POST, GET"),
    (b"access-control-allow-headers", b"Content-Type"),
)


async def read_body(request: Request, most: int) -> bytes:
    """Read a request's body, of at most `most` bytes, as it comes and as it is inflated."""
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
                    # A megabyte of empty members takes half a second: others do not wait for it.
                    chunk = await asyncio.to_thread(inflater.inflated, chunk, most + 1 - len(body))
                body += chunk
                if max(received, len(body)) > most:
                    raise refusal
    except TimeoutError as error:
        raise RequestError(
            f"The request's body did not come within {BODY_SECONDS} seconds."
        ) from error
    if inflater and not inflater.is_whole:
        raise RequestError("The gzip body ends before its end. Send all of it.")
    return bytes(body)


class _Inflater:
    """Inflates a gzip file of one member or several, piece by piece."""

    def __init__(self):
        self._member = zlib.decompressobj(GZIP_BITS)

    @property
    def is_whole(self):
        return self._member.eof

    def inflated(self, chunk, most):
        """The bytes that a chunk is inflated to, no more than `most`."""
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
    """The time that a request has: what its headers say, and no more than `most_ms`."""
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
    """The result of some work, which is cancelled when `limit` seconds are over (504) or the client
    has left (ClientDisconnect).
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_leave(request))
    try:
        done, _ = await asyncio.wait(
            {working, leaving}, timeout=limit, return_when=asyncio.FIRST_COMPLETED
        )
        if working in done:
            return working.result()
        if leaving in done:
            raise ClientDisconnect
        # The words of TensorFlow, and so of TF Serving.
        raise RequestError(
            f"Timed out waiting for notification: it took longer than {limit:g} s.", 504
        )
    finally:
        working.cancel()
        leaving.cancel()


async def _leave(request):
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def answered(
    request: Request, work: Callable, options: ServeOptions, counters: monitoring.Metrics
) -> Response:
    """Answer, count and log a request; `work` takes its body, and a dictionary for what may be
    logged of it, and gives the answer in pieces, and its headers.
    """
    seen = {"signature": "unknown"}
    status = 500
    began = time.perf_counter()
    try:
        body = await read_body(request, options.max_request_bytes)
        began = time.perf_counter()
        seen["bytes"] = len(body)
        pieces, headers = await within(
            seconds(request.headers, options.request_timeout_ms), request, work(body, seen)
        )
        status = 200
        return await _written(pieces, headers)
    except RequestError as error:
        status = error.status
        raise
    except ClientDisconnect:
        status = 499
        return Response(status_code=status)
    finally:
        took = time.perf_counter() - began
        counters.answered(seen["signature"], status, took)
        monitoring.log("predict", status=status, milliseconds=round(took * 1e3, 1), **seen)


async def _written(pieces, headers):
    """A short answer whole, a long one piece by piece, as the client takes it."""

    def begin():
        first = bytearray()
        for piece in pieces:
            first += piece
            if len(first) > WHOLE:
                break
        return bytes(first)

    first = await asyncio.to_thread(begin)
    if len(first) <= WHOLE:
        return Response(first, headers=headers)
    return StreamingResponse(itertools.chain([first], pieces), headers=headers)


class _Name(StringConvertor):
    """A part of a path without a colon, which begins the method."""

    regex = NAME


class _Number(IntegerConvertor):
    """A version's number, which is 64 bits wide in TF Serving."""

    regex = "[0-9]{1,19}"


# Routes say `{name:model}` and `{version:version}`.
register_url_convertor("model", _Name())
register_url_convertor("version", _Number())


def check_name(name: str) -> None:
    """Refuse a model's name that no URL can have."""
    if not re.fullmatch(NAME, name):
        raise ValueError(
            f"--model_name must be a name without / and :. Received: {name!r}. Its default is the "
            "name of the folder --model_base_path."
        )


def ignore_case(routes: Iterable[BaseRoute]) -> None:
    """Let TF Serving's routes match in any case, but for `EXACT`. Names keep theirs."""
    for route in routes:
        if route.path.startswith(ROOT):
            ends = "|".join(EXACT)
            pattern = re.sub(rf"({ends})\$$", r"(?-i:\1)$", route.path_regex.pattern)
            route.path_regex = re.compile(pattern, re.IGNORECASE | re.ASCII)


def is_of_tf_serving(path: str) -> bool:
    """Whether a path is one of TF Serving's, in any case."""
    return path.lower().startswith(ROOT)


def at_every_path(app: ASGIApp, cors: bool) -> ASGIApp:
    """An ASGI application in front of one that knows GET, POST and paths alone. With `cors` answers
    at TF Serving's paths have its headers for pages of other sites.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # The web server leaves out the body of its own scope's HEAD.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            scope = {**scope, "method": method, "path": _path(scope["path"])}
            if cors and is_of_tf_serving(scope["path"]):
                send = _with_cors(send)
        try:
            await app(scope, receive, send)
        # Starlette raises once more what it has answered with 500. The web server would close the
        # connection, on which a client already sends its next request.
        except Exception as error:
            monitoring.log(
                "failed", logging.ERROR, exc_info=(type(error), error, error.__traceback__)
            )

    return answer


def _path(target):
    """The path of a request's target, which may be an absolute URI."""
    if target.lower().startswith(("http://", "https://")):
        return "/" + target.partition("://")[2].partition("/")[2]
    return target


def _with_cors(send):
    async def send_with_headers(message):
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *CORS]}
        await send(message)

    return send_with_headers
