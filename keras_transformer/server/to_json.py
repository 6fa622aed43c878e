"""Arrays to a response's JSON, as TF Serving's `json_tensor.cc` writes it.

The name of a signature's only output is left out. Numbers that are not finite become the words NaN,
Infinity and -Infinity, as Python's `json` writes them; strict readers of JSON refuse these. Outputs
whose name ends in "_bytes" are base64.
"""

import base64
import json
from collections.abc import Iterator

import numpy as np
import orjson

from keras_transformer.server.options import RequestError

# Values that one call writes: it holds Python's lock.
PIECE = 2**14
_WORDS = {float("inf"): b"Infinity", -float("inf"): b"-Infinity"}


def response(outputs: dict[str, np.ndarray], in_rows: bool) -> Iterator[bytes]:
    """Return a response's body in pieces of UTF-8; `in_rows` if the request had "instances".

    Bytes of a string that are not UTF-8 are replaced.
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
    """Yield an array's JSON, nested lists of strings, numbers or truth values, in pieces."""
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
            flat = [{"b64": base64.b64encode(string).decode("ascii")} for string in flat]
        else:
            flat = [string.decode("utf-8", errors="replace") for string in flat]
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
    finite = written.split(b"null")
    words = [_WORDS.get(float(number), b"NaN") for number in array[~np.isfinite(array)]]
    return b"".join(part for pair in zip(finite, [*words, b""], strict=True) for part in pair)


def encode(document) -> bytes:
    """Write JSON as UTF-8. Half a surrogate pair, which a request may hold, becomes "?"."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", errors="replace")
