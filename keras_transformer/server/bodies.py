"""A request's body, read and inflated no further than is allowed."""

import asyncio
import zlib

from starlette.requests import Request

from keras_transformer.server.errors import RequestError

BODY_SECONDS = 60
# Names of gzip, and of bytes as they are.
GZIP = ("gzip", "x-gzip")
PLAIN = ("", "identity")
# zlib reads gzip's header and checks its checksum.
GZIP_BITS = 16 + zlib.MAX_WBITS


async def read_body(request: Request, most: int) -> bytes:
    """Read a request's body.

    Args:
        request: whose `Content-Encoding` may be gzip.
        most: bytes, both of what comes and of what it is inflated to.

    Raises:
        RequestError: if it is longer, does not come, or cannot be inflated.
    """
    refusal = RequestError(413, f"The request must be no longer than {most:,} bytes.")
    encoding = ",".join(request.headers.getlist("content-encoding")).strip().lower()
    if encoding not in (*GZIP, *PLAIN):
        raise RequestError(
            415, f"Content-Encoding must be gzip, or left out. Received: {encoding[:100]}."
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
                body += inflater.inflated(chunk, most + 1 - len(body)) if inflater else chunk
                if max(received, len(body)) > most:
                    raise refusal
    except TimeoutError as error:
        raise RequestError(
            400, f"The request's body did not come within {BODY_SECONDS} seconds."
        ) from error
    if inflater and not inflater.is_whole:
        raise RequestError(400, "The gzip body ends before its end. Send all of it.")
    return bytes(body)


class _Inflater:
    """Inflates a gzip file of one member or several, piece by piece."""

    def __init__(self):
        self._member = zlib.decompressobj(GZIP_BITS)

    @property
    def is_whole(self) -> bool:
        """Whether the last member has ended."""
        return self._member.eof

    def inflated(self, chunk: bytes, most: int) -> bytearray:
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
                400, f"The body is not gzip, as its Content-Encoding says: {error}."
            ) from error
        return inflated
