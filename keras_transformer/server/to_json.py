"""Arrays to a response's JSON, as TF Serving's `json_tensor.cc` does it.

Of a signature with one output its name is left out. Numbers that are not finite are the words NaN,
Infinity and -Infinity, which Python's and JavaScript's own writers know and strict readers of JSON
refuse. Outputs whose name ends in "_bytes" are base64.
"""

import base64
import json
from collections.abc import Iterator

import numpy as np
import orjson

from keras_transformer.server.options import RequestError

# Values written by one call, which holds Python's lock.
PIECE = 2**14
_WORDS = {float("inf"): b"Infinity", -float("inf"): b"-Infinity"}


def response(outputs: dict[str, np.ndarray], in_rows: bool) -> Iterator[bytes]:
    """The body of a response, UTF-8, piece by piece; `in_rows` if the request had "instances".

    What is not UTF-8 in a string is replaced.
    """
    if not in_rows:
        return _columns(outputs)
    sizes = {name: array.shape[0] if array.ndim else None for name, array in outputs.items()}
    if None in sizes.values() or len(set(sizes.values())) > 1:
        raise RequestError(
            f"The outputs have no batch dimension, or different ones: {sizes}. Ask for them with "
            "'inputs'."
        )
    return _rows(outputs)


def _columns(outputs):
    yield b'{"outputs": '
    yield from _member_values(outputs) if len(outputs) > 1 else _only(outputs)
    yield b"}"


def _rows(outputs):
    yield b'{"predictions": '
    if len(outputs) == 1:
        yield from _only(outputs)
    else:
        for number in range(len(next(iter(outputs.values())))):
            yield b", " if number else b"["
            yield from _member_values({name: array[number] for name, array in outputs.items()})
        yield b"]" if len(next(iter(outputs.values()))) else b"[]"
    yield b"}"


def _only(outputs):
    [(name, array)] = outputs.items()
    return values(array, name.endswith("_bytes"))


def _member_values(outputs):
    for number, (name, array) in enumerate(sorted(outputs.items())):
        yield (b", " if number else b"{") + orjson.dumps(name) + b": "
        yield from values(array, name.endswith("_bytes"))
    yield b"}"


def values(array: np.ndarray | np.generic | bytes, as_base64: bool = False) -> Iterator[bytes]:
    """An array as JSON has it, nested lists of strings, numbers or truth values, in pieces."""
    # A row of strings (B,) is one string.
    array = np.asarray(array, dtype=object if isinstance(array, (bytes, str)) else None)
    if array.size <= PIECE:
        yield _piece(array, as_base64)
        return
    several = max(1, PIECE * len(array) // array.size)
    for start in range(0, len(array), several):
        yield b"," if start else b"["
        if several == 1:
            yield from values(array[start], as_base64)
        else:
            yield _piece(array[start : start + several], as_base64)[1:-1]
    yield b"]"


def _piece(array, as_base64):
    if array.dtype == object or array.dtype.kind == "S":
        flat = array.reshape(-1).tolist()
        if as_base64:
            flat = [{"b64": base64.b64encode(one).decode("ascii")} for one in flat]
        else:
            flat = [one.decode("utf-8", errors="replace") for one in flat]
        return orjson.dumps(np.array(flat, dtype=object).reshape(array.shape).tolist())
    if array.dtype.itemsize < 4 and array.dtype.kind not in "biu":
        array = array.astype(np.float32)  # float16, and bfloat16, of kind "V"
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.kind not in "biuf":
        raise RequestError(f"JSON has no {array.dtype.name}: let the model give floats.", 501)
    if not array.ndim:
        return _piece(array[None], as_base64)[1:-1]
    written = orjson.dumps(array, option=orjson.OPT_SERIALIZE_NUMPY)
    if array.dtype.kind != "f":
        return written
    # orjson writes null for each number that is not finite.
    strange = array[~np.isfinite(array)]
    between = written.split(b"null")
    words = [_WORDS.get(float(one), b"NaN") for one in strange]
    return b"".join(part for pair in zip(between, [*words, b""], strict=True) for part in pair)


def encode(document) -> bytes:
    """Write JSON as UTF-8. Half a surrogate pair, which a request may hold, becomes "?"."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", errors="replace")
