"""A request's JSON to arrays, and its errors, as TF Serving's `json_tensor.cc` does it.

It takes three things more: inputs that have defaults may be left out, what is null is left out, and
a text without a list around it is a batch of one.
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
# Of a request. TF Serving knows the first three and passes over others: so are those passed over
# here that are no misspelled ones.
KEYS = ("signature_name", "instances", "inputs", "parameters", "glossary")
ALIKE = 0.75
# More keys than a request has are not looked at: each takes time.
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
    """The JSON object in a request's body."""
    if not body:
        raise RequestError("JSON Parse error: The document is empty")
    try:
        document = json.loads(body.decode("utf-8"), object_pairs_hook=_given)
    except UnicodeDecodeError as error:
        raise RequestError(
            f"JSON Parse error: the body is not UTF-8 at offset: {error.start}. Send bytes as b64."
        ) from error
    except json.JSONDecodeError as error:
        raise RequestError(f"JSON Parse error: {error.msg} at offset: {error.pos}") from error
    except (ValueError, RecursionError) as error:
        raise RequestError("JSON Parse error: a number too long, or lists too deep") from error
    if not isinstance(document, dict):
        raise RequestError(f"JSON Value: {_shown(document)} Is not object")
    if not isinstance(document.get("signature_name", ""), str):
        raise RequestError(
            f"JSON Value: {_shown(document)} not formatted correctly. 'signature_name' key must "
            "be a string value."
        )
    return document


def _given(members):
    """An object without nulls, by which some clients write what is left out."""
    return {name: value for name, value in members if value is not None}


def arrays(document: dict, signature: Signature, limits: ServeOptions) -> dict[str, np.ndarray]:
    """The inputs of a parsed request, by name. Too many rows are refused before they are read."""
    if "instances" in document and "inputs" in document:
        raise RequestError(
            f"JSON Value: {_shown(document)} Not formatted correctly expecting only one of "
            "'inputs' or 'instances' keys to exist "
        )
    if not {"instances", "inputs"} & document.keys():
        raise RequestError("Missing 'inputs' or 'instances' key")
    for name in itertools.islice(document, MOST_KEYS):
        alike = difflib.get_close_matches(name, KEYS, 1, ALIKE)
        if alike and name not in KEYS:
            raise RequestError(f'Unknown key {_shown(name)}. Did you mean "{alike[0]}"?')
    if "instances" in document:
        return _rows(document, signature, limits)
    return _columns(document["inputs"], signature)


def _rows(document, signature, limits):
    instances = document["instances"]
    if not isinstance(instances, list):
        raise RequestError(
            f"JSON Value: {_shown(document)} Expecting 'instances' to be an list/array"
        )
    if not instances:
        raise RequestError(f"JSON Value: {_shown(document)} No values in 'instances' array")
    refuse_many(len(instances), limits)
    named = _is_object(instances[0])
    if not named and len(signature.required) > 1:
        raise RequestError(
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            "required as per tensorinfo_map"
        )
    rows = [_row(number, instance, named, signature) for number, instance in enumerate(instances)]
    given = [name for name in signature.inputs if any(name in row for row in rows)]
    return {
        name: _stacked(name, [row.get(name) for row in rows], signature.defaults) for name in given
    }


def _row(number, instance, named, signature):
    """Arrays by name of one instance."""
    if named != _is_object(instance):
        found, expected = ("object", "value/list") if not named else ("list", "object")
        raise RequestError(f"Expecting {expected} but got {found} at item {number} of input list")
    members = instance if named else {signature.plain_input: instance}
    for name in members:
        if name not in signature.inputs:
            raise RequestError(
                f"{_element(number, name)} Error: INVALID_ARGUMENT: JSON object: does not have "
                f"named input: {name}"
            )
    missing = [name for name in signature.required if name not in members]
    if missing:
        optional = ",".join(signature.defaults)
        raise RequestError(
            f"{_element(number)} JSON object: {_shown(instance)} keys must be equal to: "
            f"{','.join(signature.inputs)}{optional and f', of which {optional} may be left out'}"
        )
    row = {}
    for name, value in members.items():
        try:
            row[name] = array(value, signature.inputs[name].dtype)
        except RequestError as error:
            raise RequestError(
                f"{_element(number, name if named else None)} Error: INVALID_ARGUMENT: "
                f"{error.message}"
            ) from error
    return row


def _element(number, name=None):
    return (
        f"Failed to process element: {number}{f' key: {name}' if name else ''} of 'instances' list."
    )


def _stacked(name, values, defaults):
    """One array of all instances' values; those that have none get the default."""
    if name in defaults and defaults[name].size == 1:
        values = [defaults[name] if value is None else value for value in values]
        values = [value.reshape(()) if value.size == 1 else value for value in values]
    shapes = [None if value is None else f"[{','.join(map(str, value.shape))}]" for value in values]
    for number, shape in enumerate(shapes):
        if shape is None or shape != shapes[0]:
            raise RequestError(
                f"{_element(number, name)} Error: INVALID_ARGUMENT: Expecting shape "
                f"{shapes[0] or 'a value'} but got: {shape or 'nothing'}"
            )
    return np.stack(values)


def _columns(value, signature):
    if not _is_object(value):
        if len(signature.required) > 1:
            raise RequestError(
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                "required as per tensorinfo_map"
            )
        value = {signature.plain_input: value}
    for name in signature.required:
        if name not in value:
            raise RequestError(f"Missing named input: {name} in 'inputs' object.")
    for name in value:
        if name not in signature.inputs:
            raise RequestError(
                f"JSON object: does not have named input: {name}. Expected: "
                f"{','.join(signature.inputs)}."
            )
    return {name: array(one, signature.inputs[name].dtype) for name, one in value.items()}


def _shown(value) -> str:
    """The beginning of a JSON value, for an error's text: of an object each member has a line."""
    if not isinstance(value, dict):
        return beginning(value)
    members = (f"    {json.dumps(name)}: {beginning(one)}" for name, one in value.items())
    return "{{\n{}\n}}".format(",\n".join(members))[:SHOWN_CHARACTERS]


def beginning(value) -> str:
    """The beginning of a JSON value in one line. All of it may be deeper than can be written."""
    pieces = json.JSONEncoder(ensure_ascii=False).iterencode(value)
    return "".join(itertools.islice(pieces, SHOWN_CHARACTERS))[:SHOWN_CHARACTERS]


def _is_object(value) -> bool:
    """Whether a JSON value is an object, and not bytes in base64."""
    return isinstance(value, dict) and not _is_base64(value)


def _is_base64(value):
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def array(value, dtype: np.dtype) -> np.ndarray:
    """A JSON value, nested lists or not, as an array."""
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
    # A number beyond float32 is infinite.
    with np.errstate(over="ignore"):
        result[:] = flat
    return result.reshape(shape)


def _flatten(value, shape, level, dtype, flat):
    if not isinstance(value, list):
        if level != len(shape):
            raise RequestError(
                f"JSON Value: {_shown(value)} found at incorrect level: {level + 1} in the JSON "
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
    for one in value:
        _flatten(one, shape, level + 1, dtype, flat)


def _scalar(value, dtype):
    """One value; Python counts True as an integer, and JSON does not."""
    kind = type(value)
    if dtype.kind == "O" and kind is str:
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RequestError(
                "JSON Parse error: The surrogate pair in string is invalid."
            ) from error
    if dtype.kind == "O" and _is_base64(value):
        in_one_line = "".join(value["b64"].split())
        try:
            return base64.b64decode(in_one_line + "=" * (-len(in_one_line) % 4), validate=True)
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
        f"JSON Value: {_shown(value)} Type: {TYPES[kind]} is not of expected type: "
        f"{'string' if dtype.kind == 'O' else dtype.name}"
    )
