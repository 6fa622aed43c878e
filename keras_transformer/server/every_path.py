"""What HTTP clients may do at every path: HEAD, an absolute URI, and requests from pages of other
sites (CORS).
"""

import logging

from starlette.types import ASGIApp, Receive, Scope, Send

from keras_transformer.server import log, paths

# As TF Serving has them.
CORS = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"POST, GET"),
    (b"access-control-allow-headers", b"Content-Type"),
)


class EveryPath:
    """An ASGI application in front of another.

    Args:
        app: knows GET, POST and paths.
        cors: whether answers at TF Serving's paths have its headers for pages of other sites.
    """

    def __init__(self, app: ASGIApp, cors: bool = False):
        self.app = app
        self.cors = cors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # The web server leaves out the body of its own scope's HEAD.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            scope = {**scope, "method": method, "path": _path(scope["path"])}
            if self.cors and paths.is_of_tf_serving(scope["path"]):
                send = _with_headers(send, CORS)
        try:
            await self.app(scope, receive, send)
        # Starlette raises once more what it has answered with 500. The web server would close the
        # connection, on which a client already sends its next request.
        except Exception as error:
            log.tell("failed", logging.ERROR, exc_info=(type(error), error, error.__traceback__))


def _path(target):
    """The path of a request's target, which may be an absolute URI."""
    if target.lower().startswith(("http://", "https://")):
        return "/" + target.partition("://")[2].partition("/")[2]
    return target


def _with_headers(send, headers):
    async def send_with_headers(message):
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *headers]}
        await send(message)

    return send_with_headers
