"""TF Serving matches its paths without regard to case, a model's name excepted."""

import re

from starlette.convertors import Convertor, register_url_convertor

_PATH = re.compile(
    r"(/v1/models/)([^/:]+)(?:(/versions/|/labels/)([^/:]+))?(:predict|/metadata)?",
    re.IGNORECASE | re.ASCII,
)


class _Name(Convertor):
    """A part of a path without a colon, which begins the method."""

    regex = "[^/:]+"

    def convert(self, value):
        return value

    def to_string(self, value):
        return value


class _Number(_Name):
    """A version: TF Serving's are 64 bits wide."""

    regex = "[0-9]{1,18}"

    def convert(self, value):
        return int(value)

    def to_string(self, value):
        return str(value)


register_url_convertor("model", _Name())
register_url_convertor("version", _Number())


def canonical(path):
    """The same path with TF Serving's words in lower case; another path as it is."""
    match = _PATH.fullmatch(path)
    if not match:
        return path
    models, name, kind, which, method = match.groups()
    return models.lower() + name + (kind or "").lower() + (which or "") + (method or "").lower()


class AnyCase:
    """Gives the application canonical paths.

    Args:
        app: an ASGI application.
    """

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            scope = {**scope, "path": canonical(scope["path"])}
        await self._app(scope, receive, send)
