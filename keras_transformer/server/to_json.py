"""Arrays to a response's JSON, as TF Serving's `json_tensor.cc` does it.

Of a signature with one output its name is left out. Numbers that are not finite are the words NaN,
Infinity and -Infinity, which Python's and JavaScript's own writers know and strict readers of JSON
refuse. Outputs whose name ends in "_bytes" are base64.
"""

import base64
import json

import numpy as np

from keras_transformer.server.errors import RequestError


def response(outputs: dict[str, np.ndarray], in_rows: bool) -> bytes:
    """The body of a response.

    Args:
        outputs: arrays by name.
        in_rows: whether the request had "instances".

    Returns:
        Bytes, UTF-8. What is not UTF-8 in a string is replaced.

    Raises:
        RequestError: in rows, if the outputs have no rows, or not as many.
    """
    values = {
        name: plain(array, name.endswith("_bytes")) for name, array in sorted(outputs.items())
    }
    if not in_rows:
        return encode({"outputs": values if len(values) > 1 else next(iter(values.values()))})
    sizes = {name: array.shape[0] if array.ndim else None for name, array in outputs.items()}
    if None in sizes.values() or len(set(sizes.values())) > 1:
        raise RequestError(
            400,
            f"The outputs have no batch dimension, or different ones: {sizes}. Ask for them with "
            "'inputs'.",
        )
    if len(values) == 1:
        return encode({"predictions": next(iter(values.values()))})
    return encode(
        {
            "predictions": [
                dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)
            ]
        }
    )


def plain(array: np.ndarray, as_base64: bool = False):
    """An array as JSON has it, nested lists of strings, numbers or truth values."""
    if array.dtype == object or array.dtype.kind == "S":
        show = _base64 if as_base64 else _text
        flat = np.empty(array.size, dtype=object)
        flat[:] = [show(one) for one in array.reshape(-1)]
        return flat.reshape(array.shape).tolist()
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        # The shortest digits that mean this float32: as float64 it has digits that mean nothing.
        return array.astype(np.float32).astype(str).astype(np.float64).tolist()
    return array.tolist()


def encode(document) -> bytes:
    """Write JSON as UTF-8. Half a surrogate pair, which a request may hold, becomes "?"."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", errors="replace")


def _text(value):
    return value.decode("utf-8", errors="replace")


def _base64(value):
    return {"b64": base64.b64encode(value).decode("ascii")}
