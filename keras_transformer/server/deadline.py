"""Until when a client waits for its answer."""

import asyncio
import re
from collections.abc import Coroutine, Mapping

from starlette.requests import ClientDisconnect, Request

from keras_transformer.server.errors import RequestError

# What clients and proxies say: the header of gRPC, and that of Envoy, in milliseconds.
GRPC = "grpc-timeout"
ENVOY = "x-envoy-expected-rq-timeout-ms"
SECONDS = {"H": 3600, "M": 60, "S": 1, "m": 1e-3, "u": 1e-6, "n": 1e-9}


def seconds(headers: Mapping[str, str], most_ms: int) -> float:
    """The time that a request has: what its headers say, and no more than `most_ms`.

    Raises:
        RequestError: if a header is no time.
    """
    times = [most_ms / 1e3]
    for name, pattern in ((GRPC, r"(\d{1,8})([HMSmun])"), (ENVOY, r"(\d{1,12})()")):
        if name in headers:
            match = re.fullmatch(pattern, headers[name], re.ASCII)
            if match is None:
                raise RequestError(
                    400,
                    f"The header {name} must be a time such as "
                    f"{'500m or 30S' if name == GRPC else '500'}. Received: {headers[name]!r}.",
                )
            times.append(int(match[1]) * SECONDS.get(match[2], 1e-3))
    return min(times)


async def within(limit: float, request: Request, work: Coroutine):
    """The result of some work, which is cancelled when the time is over or the client has left.

    Args:
        limit: seconds.
        request: whose body was read.
        work: what is awaited.

    Raises:
        RequestError: if the time is over.
        ClientDisconnect: if the client has left.
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
            504, f"Timed out waiting for notification: it took longer than {limit:g} s."
        )
    finally:
        working.cancel()
        leaving.cancel()


async def _leave(request):
    while (await request.receive())["type"] != "http.disconnect":
        pass
