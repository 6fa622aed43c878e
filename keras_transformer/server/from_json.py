"""A request's JSON to arrays, and its errors, as TF Serving's `json_tensor.cc` does it.

It takes two things more: inputs that have defaults may be left out, and a text without a list
around it is a batch of one.
"""

import json

import numpy as np

from keras_transformer.saved_models.session import Signature
from keras_transformer.server.errors import RequestError
from keras_transformer.server.json_values import array, is_object, shown


def parse(body: bytes) -> dict:
    """The JSON object in a request's body.

    Args:
        body: bytes.

    Raises:
        RequestError: if there is none.
    """
    if not body:
        raise RequestError(400, "JSON Parse error: The document is empty")
    try:
        document = json.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RequestError(
            400,
            f"JSON Parse error: the body is not UTF-8 at offset: {error.start}. Send bytes as b64.",
        ) from error
    except json.JSONDecodeError as error:
        raise RequestError(400, f"JSON Parse error: {error.msg} at offset: {error.pos}") from error
    except (ValueError, RecursionError) as error:
        raise RequestError(400, "JSON Parse error: a number too long, or lists too deep") from error
    if not isinstance(document, dict):
        raise RequestError(400, f"JSON Value: {shown(document)} Is not object")
    if not isinstance(document.get("signature_name", ""), str):
        raise RequestError(
            400,
            f"JSON Value: {shown(document)} not formatted correctly. 'signature_name' key must "
            "be a string value.",
        )
    return document


def arrays(document: dict, signature: Signature) -> tuple[dict[str, np.ndarray], bool]:
    """The inputs of a parsed request.

    Args:
        document: what `parse` gave.
        signature: the `Signature` that it asks for.

    Returns:
        Arrays by name, as the request has them, and whether it has them in rows ("instances")
        rather than in columns ("inputs").

    Raises:
        RequestError: if they do not fit the signature.
    """
    if "instances" in document and "inputs" in document:
        raise RequestError(
            400,
            f"JSON Value: {shown(document)} Not formatted correctly expecting only one of "
            "'inputs' or 'instances' keys to exist ",
        )
    if "instances" in document:
        return _rows(document, signature), True
    if "inputs" in document:
        return _columns(document["inputs"], signature), False
    raise RequestError(400, "Missing 'inputs' or 'instances' key")


def _rows(document, signature):
    instances = document["instances"]
    if not isinstance(instances, list):
        raise RequestError(
            400, f"JSON Value: {shown(document)} Expecting 'instances' to be an list/array"
        )
    if not instances:
        raise RequestError(400, f"JSON Value: {shown(document)} No values in 'instances' array")
    named = is_object(instances[0])
    if not named and len(signature.required) > 1:
        raise RequestError(
            400,
            "instances is a plain list, but expecting list of objects as multiple input tensors "
            "required as per tensorinfo_map",
        )
    rows = [_row(number, instance, named, signature) for number, instance in enumerate(instances)]
    given = [name for name in signature.inputs if any(name in row for row in rows)]
    return {
        name: _stacked(name, [row.get(name) for row in rows], signature.defaults) for name in given
    }


def _row(number, instance, named, signature):
    """Arrays by name of one instance."""
    if named != is_object(instance):
        found, expected = ("object", "value/list") if not named else ("list", "object")
        raise RequestError(
            400, f"Expecting {expected} but got {found} at item {number} of input list"
        )
    members = instance if named else {signature.plain_input: instance}
    for name in members:
        if name not in signature.inputs:
            raise RequestError(
                400,
                f"{_element(number, name)} Error: INVALID_ARGUMENT: JSON object: does not have "
                f"named input: {name}",
            )
    missing = [name for name in signature.required if name not in members]
    if missing:
        raise RequestError(
            400,
            f"{_element(number)} JSON object: {shown(instance)} keys must be equal to: "
            f"{','.join(signature.inputs)}"
            + (
                f", of which {','.join(signature.defaults)} may be left out"
                if signature.defaults
                else ""
            ),
        )
    row = {}
    for name, value in members.items():
        try:
            row[name] = array(value, signature.inputs[name].dtype)
        except RequestError as error:
            raise RequestError(
                400,
                f"{_element(number, name if named else None)} Error: INVALID_ARGUMENT: "
                f"{error.message}",
            ) from error
    return row


def _element(number, name=None):
    return (
        f"Failed to process element: {number}{f' key: {name}' if name else ''} of 'instances' list."
    )


def _stacked(name, values, defaults):
    """One array of all instances' values; those that have none get the default."""
    if name in defaults and defaults[name].size == 1:
        values = [
            defaults[name].reshape(())
            if value is None
            else value.reshape(())
            if value.size == 1
            else value
            for value in values
        ]
    for number, value in enumerate(values):
        if value is None or value.shape != values[0].shape:
            came = "nothing" if value is None else f"[{','.join(map(str, value.shape))}]"
            expected = (
                "a value" if values[0] is None else f"[{','.join(map(str, values[0].shape))}]"
            )
            raise RequestError(
                400,
                f"{_element(number, name)} Error: INVALID_ARGUMENT: Expecting shape {expected} "
                f"but got: {came}",
            )
    return np.stack(values)


def _columns(value, signature):
    if not is_object(value):
        if len(signature.required) > 1:
            raise RequestError(
                400,
                "inputs is a plain value/list, but expecting an object as multiple input tensors "
                "required as per tensorinfo_map",
            )
        value = {signature.plain_input: value}
    for name in signature.required:
        if name not in value:
            raise RequestError(400, f"Missing named input: {name} in 'inputs' object.")
    for name in value:
        if name not in signature.inputs:
            raise RequestError(
                400,
                f"JSON object: does not have named input: {name}. Expected: "
                f"{','.join(signature.inputs)}.",
            )
    return {name: array(one, signature.inputs[name].dtype) for name, one in value.items()}
