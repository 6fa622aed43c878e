"""What a part of TF Serving's paths may be: a model's or label's name, and a version's number."""

from starlette.convertors import Convertor, register_url_convertor


class _Name(Convertor):
    """A part of a path without a colon, which begins the method."""

    regex = "[^/:]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


class _Number(Convertor):
    """A version's number, which is 64 bits wide in TF Serving."""

    regex = "[0-9]{1,18}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


def register() -> None:
    """Let routes say `{name:model}` and `{version:version}`."""
    register_url_convertor("model", _Name())
    register_url_convertor("version", _Number())
