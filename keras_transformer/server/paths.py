"""TF Serving's paths: they ignore upper and lower case, except in a final method or "metadata".
Their parts are a model's or label's name, and a version's number.
"""

import re
from collections.abc import Iterable

from starlette.convertors import Convertor, register_url_convertor
from starlette.routing import BaseRoute

ROOT = "/v1/"
NAME = "[^/:]+"
PROMETHEUS = "/monitoring/prometheus/metrics"
# TF Serving finds these in upper case too, and then compares them letter by letter.
EXACT = ("predict", "metadata")


class _Name(Convertor):
    """A part of a path without a colon, which begins the method."""

    regex = NAME

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _Number(Convertor):
    """A version's number, which is 64 bits wide in TF Serving."""

    regex = "[0-9]{1,19}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


def register() -> None:
    """Let routes say `{name:model}` and `{version:version}`."""
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
