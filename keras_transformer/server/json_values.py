"""One JSON value to an array of a type, with the errors of TF Serving's `json_tensor.cc`."""

import base64
import binascii
import json

import numpy as np
import tensorflow as tf

from keras_transformer.server.errors import RequestError

MOST_DIMENSIONS = 8
SHOWN_CHARACTERS = 256
TYPES = {
    type(None): "Null",
    bool: "Bool",
    int: "Number",
    float: "Number",
    str: "String",
    list: "Array",
    dict: "Object",
}


def shown(value) -> str:
    """The beginning of a JSON value, for an error's text."""
    if isinstance(value, dict):
        members = ",\n".join(
            f"    {json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}"
            for name, one in value.items()
        )
        return f"{{\n{members}\n}}"[:SHOWN_CHARACTERS]
    return json.dumps(value, ensure_ascii=False)[:SHOWN_CHARACTERS]


def is_object(value) -> bool:
    """Whether a JSON value is an object, and not bytes in base64."""
    return isinstance(value, dict) and not _is_base64(value)


def _is_base64(value):
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def array(value, dtype: tf.DType) -> np.ndarray:
    """A JSON value, nested lists or not, as an array.

    Args:
        value: what JSON has.
        dtype: a `tf.DType`, the array's.

    Raises:
        RequestError: if the lists are of different lengths, or hold anything else.
    """
    shape = []
    first = value
    while isinstance(first, list):
        shape.append(len(first))
        if len(shape) > MOST_DIMENSIONS:
            raise RequestError(400, f"Encountered more than {MOST_DIMENSIONS} lists in one another")
        first = first[0] if first else None
    flat = []
    _flatten(value, shape, 0, dtype, flat)
    result = np.empty(len(flat), dtype=dtype.as_numpy_dtype)
    # A number beyond float32 is infinite.
    with np.errstate(over="ignore"):
        result[:] = flat
    return result.reshape(shape)


def _flatten(value, shape, level, dtype, flat):
    if not isinstance(value, list):
        if level != len(shape):
            raise RequestError(
                400,
                f"JSON Value: {shown(value)} found at incorrect level: {level + 1} in the JSON "
                f"DOM. Expected at level: {len(shape)}",
            )
        flat.append(_scalar(value, dtype))
        return
    if level >= len(shape):
        raise RequestError(
            400, f"Encountered list at unexpected level: {level} expected < {len(shape)}"
        )
    if len(value) != shape[level]:
        raise RequestError(
            400,
            f"Encountered list at unexpected size: {len(value)} at level: {level} expected size: "
            f"{shape[level]}",
        )
    for one in value:
        _flatten(one, shape, level + 1, dtype, flat)


def _scalar(value, dtype):
    """One value; Python counts True as an integer, and JSON does not."""
    kind = type(value)
    if dtype.name == "string" and kind is str:
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RequestError(
                400, "JSON Parse error: The surrogate pair in string is invalid."
            ) from error
    if dtype.name == "string" and _is_base64(value):
        try:
            return base64.b64decode(value["b64"] + "=" * (-len(value["b64"]) % 4), validate=True)
        except (binascii.Error, ValueError) as error:
            raise RequestError(400, "Unable to base64 decode") from error
    if dtype.is_bool and kind is bool:
        return value
    if dtype.is_floating and kind in (int, float):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if dtype.is_integer and kind is int and dtype.min <= value <= dtype.max:
        return value
    raise RequestError(
        400, f"JSON Value: {shown(value)} Type: {TYPES[kind]} is not of expected type: {dtype.name}"
    )
