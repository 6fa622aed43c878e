"""A request's JSON to arrays, with the errors of TF Serving's `json_tensor.cc`.

It extends TF Serving in three ways: inputs with defaults are optional, a null member counts as
absent, and a text without a list around it is a batch of one.
"""

import base64
import binascii
import difflib
import itertools
import json

import numpy as np

from keras_transformer.saved_models.signature import Signature
from keras_transformer.server.options import RequestError, ServeOptions
from keras_transformer.server.rows import refuse_many

MOST_DIMENSIONS = 8
SHOWN_CHARACTERS = 256
# Keys of a request. TF Serving knows the first three and ignores others. So do we, but we refuse a
# key that resembles one of these as misspelled.
KEYS = ("signature_name", "instances", "inputs", "parameters", "glossary")
SIMILARITY = 0.75
# Only so many keys are checked for their spelling: each takes time.
MOST_KEYS = 16
TYPES = {
    type(None): "Null",
    bool: "Bool",
    int: "Number",
    float: "Number",
    str: "String",
    list: "Array",
    dict: "Object",
}


def parse(body: bytes) -> dict:
    """Parse the JSON object in a request's body."""
    if not body:
        raise RequestError("JSON Parse error: The document is empty")
    try:
        document = json.loads(body.decode("utf-8"), object_pairs_hook=_without_nulls)
    except UnicodeDecodeError as error:
        raise RequestError(
            f"JSON Parse error: the body is not UTF-8 at offset: {error.start}. Send bytes as b64."
        ) from error
    except json.JSONDecodeError as error:
        raise RequestError(f"JSON Parse error: {error.msg} at offset: {error.pos}") from error
    except (ValueError, RecursionError) as error:
        raise RequestError("JSON Parse error: a number too long, or lists too deep") from error
    if not isinstance(document, dict):
        raise RequestError(f"JSON Value: {_excerpt(document)} Is not object")
    if not isinstance(document.get("signature_name", ""), str):
        raise RequestError(
            f"JSON Value: {_excerpt(document)} not formatted correctly. 'signature_name' key must "
            "be a string value."
        )
    return document


def _without_nulls(members):
    """Drop members that are null, as which some clients write absent ones."""
    return {name: value for name, value in members if value is not None}


def arrays(document: dict, signature: Signature, limits: ServeOptions) -> dict[str, np.ndarray]:
    """Read a parsed request's inputs, by name. Too many rows are refused before they are read."""
    if "instances" in document and "inputs" in document:
        raise RequestError(
            f"JSON Value: {_excerpt(document)} Not formatted correctly expecting only one of "
            "'inputs' or 'instances' keys to exist "
        )
    if not {"instances", "inputs"} & document.keys():
        raise RequestError("Missing 'inputs' or 'instances' key")
    for name in itertools.islice(document, MOST_KEYS):
        matches = difflib.get_close_matches(name, KEYS, 1, SIMILARITY)
        if matches and name not in KEYS:
            raise RequestError(f'Unknown key {_excerpt(name)}. Did you mean "{matches[0]}"?')
    if "instances" in document:
        return _rows(document, signature, limits)
    return _columns(document["inputs"], signature)


def _rows(document, signature, limits):
    instances = document["instances"]
    if not isinstance(instances, list):
        raise RequestError(
            f"JSON Value: {_excerpt(document)} Expecting 'instances' to be an list/array"
        )
    if not instances:
        raise RequestError(f"JSON Value: {_excerpt(document)} No values in 'instances' array")
    refuse_many(len(instances), limits)
    are_objects = _is_object(instances[0])
    if not are_objects and len(signature.required) > 1:
        raise RequestError(
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            "required as per tensorinfo_map"
        )
    rows = [_row(n, instance, are_objects, signature) for n, instance in enumerate(instances)]
    names = {*itertools.chain(*rows)}
    # Several rows that leave out every input are as many defaults of one.
    if not names and len(rows) > 1:
        names = {signature.plain_input}
    return {
        name: _stacked(name, [row.get(name) for row in rows], signature.defaults)
        for name in signature.inputs
        if name in names
    }


def _row(number, instance, is_object, signature):
    """Read one instance: arrays by name."""
    if is_object != _is_object(instance):
        expected, came = ("object", "list") if is_object else ("value/list", "object")
        raise RequestError(f"Expecting {expected} but got {came} at item {number} of input list")
    members = instance if is_object else {signature.plain_input: instance}
    for name in members:
        if name not in signature.inputs:
            raise RequestError(
                f"{_failure(number, name)} Error: INVALID_ARGUMENT: JSON object: does not have "
                f"named input: {name}"
            )
    missing = [name for name in signature.required if name not in members]
    if missing:
        optional = ",".join(signature.defaults)
        raise RequestError(
            f"{_failure(number)} JSON object: {_excerpt(instance)} keys must be equal to: "
            f"{','.join(signature.inputs)}{optional and f', of which {optional} may be left out'}"
        )
    row = {}
    for name, value in members.items():
        try:
            row[name] = array(value, signature.inputs[name].dtype)
        except RequestError as error:
            raise RequestError(
                f"{_failure(number, name if is_object else None)} Error: INVALID_ARGUMENT: "
                f"{error.message}"
            ) from error
    return row


def _failure(number, name=None):
    return (
        f"Failed to process element: {number}{f' key: {name}' if name else ''} of 'instances' list."
    )


def _stacked(name, values, defaults):
    """Stack the instances' values; those without one get the default."""
    if name in defaults and defaults[name].size == 1:
        values = [defaults[name] if value is None else value for value in values]
        values = [value.reshape(()) if value.size == 1 else value for value in values]
    shapes = [None if value is None else f"[{','.join(map(str, value.shape))}]" for value in values]
    for number, shape in enumerate(shapes):
        if shape is None or shape != shapes[0]:
            raise RequestError(
                f"{_failure(number, name)} Error: INVALID_ARGUMENT: Expecting shape "
                f"{shapes[0] or 'a value'} but got: {shape or 'nothing'}"
            )
    return np.stack(values)


def _columns(inputs, signature):
    if not _is_object(inputs):
        if len(signature.required) > 1:
            raise RequestError(
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                "required as per tensorinfo_map"
            )
        inputs = {signature.plain_input: inputs}
    for name in signature.required:
        if name not in inputs:
            raise RequestError(f"Missing named input: {name} in 'inputs' object.")
    for name in inputs:
        if name not in signature.inputs:
            raise RequestError(
                f"JSON object: does not have named input: {name}. Expected: "
                f"{','.join(signature.inputs)}."
            )
    return {name: array(value, signature.inputs[name].dtype) for name, value in inputs.items()}


def _excerpt(value) -> str:
    """Return the beginning of a JSON value for an error: each member of an object on a line."""
    if not isinstance(value, dict):
        return beginning(value)
    members = (f"    {json.dumps(name)}: {beginning(member)}" for name, member in value.items())
    return "{{\n{}\n}}".format(",\n".join(members))[:SHOWN_CHARACTERS]


def beginning(value) -> str:
    """Return the beginning of a JSON value in one line. `json.dumps` may recurse too deep."""
    pieces = json.JSONEncoder(ensure_ascii=False).iterencode(value)
    return "".join(itertools.islice(pieces, SHOWN_CHARACTERS))[:SHOWN_CHARACTERS]


def _is_object(value) -> bool:
    """Whether a JSON value is an object other than bytes in base64."""
    return isinstance(value, dict) and not _is_base64(value)


def _is_base64(value):
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def array(value, dtype: np.dtype) -> np.ndarray:
    """Convert a JSON value, nested lists or not, to an array."""
    dtype = np.dtype(dtype)
    shape = []
    first = value
    while isinstance(first, list):
        shape.append(len(first))
        if len(shape) > MOST_DIMENSIONS:
            raise RequestError(f"Encountered more than {MOST_DIMENSIONS} lists in one another")
        first = first[0] if first else None
    flat = []
    _flatten(value, shape, 0, dtype, flat)
    result = np.empty(len(flat), dtype)
    # A number beyond float32's range becomes infinite.
    with np.errstate(over="ignore"):
        result[:] = flat
    return result.reshape(shape)


def _flatten(value, shape, level, dtype, flat):
    if not isinstance(value, list):
        if level != len(shape):
            raise RequestError(
                f"JSON Value: {_excerpt(value)} found at incorrect level: {level + 1} in the JSON "
                f"DOM. Expected at level: {len(shape)}"
            )
        flat.append(_scalar(value, dtype))
        return
    if level >= len(shape):
        raise RequestError(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
    if len(value) != shape[level]:
        raise RequestError(
            f"Encountered list at unexpected size: {len(value)} at level: {level} expected size: "
            f"{shape[level]}"
        )
    for element in value:
        _flatten(element, shape, level + 1, dtype, flat)


def _scalar(value, dtype):
    """Convert one value. Types must match exactly: for Python True is an integer, for JSON not."""
    kind = type(value)
    if dtype.kind == "O" and kind is str:
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RequestError(
                "JSON Parse error: The surrogate pair in string is invalid."
            ) from error
    if dtype.kind == "O" and _is_base64(value):
        digits = "".join(value["b64"].split())
        try:
            return base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
        except (binascii.Error, ValueError) as error:
            raise RequestError("Unable to base64 decode") from error
    if dtype.kind == "b" and kind is bool:
        return value
    if dtype.kind in "fV" and kind in (int, float):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    if dtype.kind in "iu" and kind is int and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        return value
    raise RequestError(
        f"JSON Value: {_excerpt(value)} Type: {TYPES[kind]} is not of expected type: "
        f"{'string' if dtype.kind == 'O' else dtype.name}"
    )
