"""JSON files and their schemas: the one reader for files from elsewhere and from our earlier runs.
A bad file of any kind ends in an error of one line.
"""

import json
import os
import pathlib
import re
import stat
import typing
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

# Enough for settings: the largest of them name 22,000 classes.
MOST_BYTES = 2**24
# Enough for tokenizer.json, or the manifest of many shards.
MOST_BYTES_OF_LISTS = 2**26
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}
OF_JSON = {dict: "an object", list: "a list"}
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
LONGEST_SHOWN = 60


class Schema(msgspec.Struct):
    """The keys of a JSON object that we read, as fields with types and bounds.

    Attributes:
        FIXED: further keys, with the values that we support; errors name the first one first.
        HARMLESS: further keys that do not change what we compute.
    """

    FIXED: typing.ClassVar[Mapping[str, Collection]] = {}
    HARMLESS: typing.ClassVar[Collection[str]] = ()


def regular_file(path: str | os.PathLike) -> pathlib.Path:
    """Return the path if it is a regular file or a link to one; a FIFO could block for ever."""
    kind = stat.S_IFMT(os.stat(path).st_mode)
    if kind != stat.S_IFREG:
        raise ValueError(f"{path} must be a file. Received: {KINDS.get(kind, 'something else')}.")
    return pathlib.Path(path)


def read_text(path: str | os.PathLike, most_bytes: int = MOST_BYTES) -> str:
    """Read a UTF-8 file, with its line ends unchanged."""
    with open(regular_file(path), "rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"{path} must have at most {most_bytes:,} bytes. Received: more.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is damaged: it must be UTF-8. Received: byte {error.start} is not."
        ) from error


def read_json(path: str | os.PathLike, remedy: str, most_bytes: int = MOST_BYTES) -> Any:
    """Parse a JSON file. An error message ends with the remedy."""
    try:
        text = read_text(path, most_bytes).removeprefix("\ufeff")
    except ValueError as error:
        raise ValueError(f"{error} {remedy}") from error
    try:
        value = json.loads(text, object_pairs_hook=_dict_without_repeats)
        if SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError(f"{path} is damaged: its brackets nest too deeply. {remedy}") from None
    except ValueError as error:
        raise ValueError(f"{path} is damaged: it is not JSON ({error}). {remedy}") from error
    return value


def read_object(
    path: str | os.PathLike, remedy: str, most_bytes: int = MOST_BYTES
) -> dict[str, Any]:
    """Parse a JSON file that must hold an object; see `read_json`."""
    value = read_json(path, remedy, most_bytes)
    if not isinstance(value, dict):
        raise ValueError(
            f"{path} is damaged: it must hold a JSON object. Received: {quote(value)}. {remedy}"
        )
    return value


def settings(
    schema: type[Schema], document: Mapping[str, Any], place: str | os.PathLike, remedy: str
) -> tuple[Any, list[str]]:
    """Return a JSON object as an instance of its schema, and its keys that the schema does not know
    and that are not null. An error names the key, the file, what it must be and what it is, and
    ends with the remedy.
    """
    if not isinstance(document, Mapping) or not all(isinstance(key, str) for key in document):
        raise ValueError(
            f"{place} must be a mapping of names. Received: {quote(document)}. {remedy}"
        )
    fields = {field.encode_name: field for field in msgspec.structs.fields(schema)}
    missing = [name for name, field in fields.items() if field.required and name not in document]
    if missing:
        raise ValueError(f"{place} lacks {', '.join(missing)}. {remedy}")
    for name, values in schema.FIXED.items():
        allowed = [(type(value), value) for value in values]  # In JSON true is not 1.
        if name in document and (type(document[name]), document[name]) not in allowed:
            refuse(name, place, " or ".join(map(quote, values)), document[name], remedy)
    try:
        instance = msgspec.convert(document, schema)
    except msgspec.ValidationError as error:
        # Such as "Expected `int`, got `str` - at `$.size[0]`".
        reason, _, where = str(error).rpartition(" - at ")
        [name] = re.findall(r"`\$\.([\w-]+)", where)
        if choices := typing.get_args(fields[name].type) if "enum" in reason else ():
            expected = f"one of {', '.join(map(str, choices))}"
        else:
            expected = reason.removeprefix("Expected ").partition(", got")[0]
        refuse(name, place, expected, document[name], remedy)
    keys = {*fields, *schema.FIXED, *schema.HARMLESS}
    return instance, [name for name in document if name not in keys and document[name] is not None]


def refuse(name: str, place: str | os.PathLike, expected: str, value: Any, remedy: str) -> None:
    """Raise the ValueError for a key of a JSON object."""
    raise ValueError(f"`{name}` of {place} must be {expected}. Received: {quote(value)}. {remedy}")


def quote(value: Any) -> str:
    """Return a value in JSON for an error message: strings without quotes unless empty, long ones
    cut short, "a list" or "an object" instead of their content. YAML's dates and bytes are text.
    """
    if isinstance(value, dict | list) and value:
        return OF_JSON[type(value)]
    text = value if value and isinstance(value, str) else json.dumps(value, default=str)
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _dict_without_repeats(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in result if names.count(name) > 1)
        raise ValueError(f"an object names {quote(twice)} twice")
    return result
