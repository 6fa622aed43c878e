"""The Open Inference Protocol, version 2: its requests to the arrays that TF Serving's JSON leads
to, and arrays to its answers.

The data of a tensor stand in the JSON, flat or nested, or as bytes behind it (the binary tensor
data extension): the header Inference-Header-Content-Length then says how long the JSON is.
"""

import contextlib
import dataclasses
import math
from collections.abc import Iterable, Iterator

import numpy as np

from keras_transformer.saved_models.signature import DEFAULT_SIGNATURE, Signature, TensorSpec
from keras_transformer.server import binary_tensors, from_json, to_json
from keras_transformer.server.options import RequestError

HEADER = "Inference-Header-Content-Length"
EXTENSIONS = ["binary_tensor_data", "parameters"]
# What the parameters of a request may say beside the options of its signature: name and type.
SAID = {"signature_name": str, "glossary": dict, "timeout": int, "binary_data_output": bool}


@dataclasses.dataclass
class Inference:
    """A request as it is read before its signature is known: its inputs, objects by name, and the
    bytes of those that stand behind the JSON; whether each output that is asked for shall be
    binary, all if there is none; the parameters that are no options, and those that are; and what
    the answer is told apart by, if anything.
    """

    tensors: dict
    binary: dict
    outputs: dict
    said: dict
    options: dict
    id: str | None

    @property
    def signature_name(self) -> str:
        return self.said.get("signature_name") or DEFAULT_SIGNATURE

    def arrays(self, signature: Signature) -> dict[str, np.ndarray]:
        """The inputs by name, with the options among the parameters."""
        for name in self.outputs:
            if name not in signature.outputs:
                raise _unknown("output", name, self.signature_name, signature.outputs)
        given = {}
        for name, tensor in self.tensors.items():
            if name not in signature.inputs:
                raise _unknown("input", name, self.signature_name, signature.inputs)
            given[name] = _array(name, tensor, self.binary.get(name), signature.inputs[name])
        for name in signature.required:
            if name not in given:
                raise RequestError(f"`{self.signature_name}` needs the input `{name}`.")
        return with_options(given, self.options, self.signature_name, signature)

    def answer(
        self, outputs: dict[str, np.ndarray], model: str, version: int
    ) -> tuple[Iterator[bytes], dict[str, str]]:
        """The body of the answer in pieces, and its headers."""
        everywhere = self.said.get("binary_data_output", False)
        asked = self.outputs or dict.fromkeys(outputs, None)
        is_binary = {name: everywhere if one is None else one for name, one in asked.items()}
        blobs = {
            name: binary_tensors.to_bytes(outputs[name]) for name, one in is_binary.items() if one
        }
        head = {"model_name": model, "model_version": str(version)}
        head |= {} if self.id is None else {"id": self.id}
        tensors = [
            _written(name, outputs[name], len(blobs[name]) if name in blobs else None)
            for name in asked
        ]
        pieces = _joined(to_json.encode(head)[:-1], tensors)
        if not blobs:
            return pieces, {"Content-Type": "application/json"}
        whole = b"".join(pieces)
        headers = {HEADER: str(len(whole)), "Content-Type": "application/octet-stream"}
        return iter([whole, *blobs.values()]), headers


def read(body: bytes, length: str | None) -> Inference:
    """A request of its body and of the header that says how many bytes of it are JSON."""
    if length is not None and not (length.isascii() and length.isdigit() and len(length) < 12):
        raise RequestError(f"{HEADER} must be a number of bytes. Received: {length!r}.")
    size = len(body) if length is None else int(length)
    if size > len(body):
        raise RequestError(f"{HEADER} is {size}, but the body has {len(body)} bytes.")
    document = from_json.parse(body[:size])
    inputs = _objects(document, "inputs")
    if not inputs:
        raise RequestError('"inputs" must be a list of at least one tensor.')
    binary = {}
    rest = memoryview(body)[size:]
    for name, tensor in inputs.items():
        own = parameters_of(tensor, f"the input `{name}`").get("binary_data_size")
        if own is None:
            continue
        if type(own) is not int or not 0 <= own <= len(rest):
            raise RequestError(
                f"binary_data_size of `{name}` must be the number of its bytes behind the JSON, "
                f"whose length {HEADER} says: {len(rest)} are left. Received: {own!r:.80}."
            )
        binary[name] = bytes(rest[:own])
        rest = rest[own:]
    if rest:
        raise RequestError(f"{len(rest)} bytes behind the last tensor belong to none.")
    said, options = parted(parameters_of(document, "the request"))
    if not isinstance(document.get("id", ""), str):
        raise RequestError('"id" must be a string.')
    return Inference(
        tensors=inputs,
        binary=binary,
        outputs={
            name: _is_binary(name, one) for name, one in _objects(document, "outputs").items()
        },
        said=said,
        options=options,
        id=document.get("id"),
    )


def parted(parameters: dict) -> tuple[dict, dict]:
    """The parameters of a request that are in `SAID`, and the options of its signature."""
    for name, kind in SAID.items():
        if name in parameters and type(parameters[name]) is not kind:
            raise RequestError(
                f"The parameter `{name}` must be of type {kind.__name__}. Received: "
                f"{from_json.beginning(parameters[name])}."
            )
    if parameters.get("timeout", 0) < 0:
        raise RequestError("The parameter `timeout` must be at least 0 microseconds.")
    said = {name: value for name, value in parameters.items() if name in SAID}
    return said, {name: value for name, value in parameters.items() if name not in SAID}


def seconds(said: dict) -> float | None:
    """The time that a request gives itself, `timeout` in microseconds; None: any."""
    return min(said.get("timeout", 0), 2**60) / 1e6 or None


def with_options(
    given: dict[str, np.ndarray], options: dict, name: str, signature: Signature
) -> dict[str, np.ndarray]:
    """The arrays of a request to a signature of some name, with options that hold for all rows."""
    arrays = dict(given)
    for option, value in options.items():
        if option not in signature.defaults:
            raise _unknown("parameter", option, name, [*SAID, *signature.defaults])
        if option in given:
            raise RequestError(f"`{option}` is given twice: as an input and a parameter.")
        arrays[option] = from_json.array(value, signature.inputs[option].dtype)
    return arrays


def tensors(specs: Iterable[TensorSpec], optional: Iterable[str] = ()) -> list[dict]:
    """What a model's metadata say of the inputs or outputs of a signature, by name."""
    return [
        {
            "name": name,
            "datatype": binary_tensors.datatype(spec.dtype),
            "shape": [-1 if size is None else size for size in spec.shape or ()],
            **({"parameters": {"optional": True}} if name in optional else {}),
        }
        for name, spec in specs.items()
    ]


def _unknown(kind, name, signature_name, known):
    return RequestError(
        f"`{signature_name}` has no {kind} `{name}`. It has: {', '.join(known)}. Another signature "
        "is chosen by the parameter signature_name."
    )


def _objects(document, key):
    """A list of objects with names, by these."""
    found = document.get(key, [])
    if not isinstance(found, list) or not all(
        isinstance(one, dict) and isinstance(one.get("name"), str) for one in found
    ):
        raise RequestError(f'"{key}" must be a list of objects, each with a "name".')
    by_name = {one["name"]: one for one in found}
    if len(by_name) < len(found):
        raise RequestError(f'"{key}" must have each name once.')
    return by_name


def parameters_of(document: dict, of: str) -> dict:
    """The parameters of a request, an input or an output."""
    found = document.get("parameters") or {}
    if not isinstance(found, dict):
        raise RequestError(f'"parameters" of {of} must be an object.')
    return found


def _is_binary(name, output):
    parameters = parameters_of(output, f"the output `{name}`")
    if parameters.get("classification"):
        raise RequestError("The classification extension is not supported. Leave it out.")
    asked = parameters.get("binary_data")
    if asked not in (None, True, False):
        raise RequestError(f"binary_data of the output `{name}` must be true or false.")
    return asked


def _array(name, tensor, binary, spec):
    """A tensor's data in its shape."""
    dtype = spec.dtype
    expected = binary_tensors.datatype(dtype)
    if tensor.get("datatype") != expected:
        raise RequestError(
            f"The datatype of `{name}` must be {expected}. Received: "
            f"{from_json.beginning(tensor.get('datatype'))}."
        )
    shape = tensor.get("shape")
    if (
        not isinstance(shape, list)
        or len(shape) > from_json.MOST_DIMENSIONS
        or not all(type(size) is int and 0 <= size < 2**31 for size in shape)
    ):
        raise RequestError(f"The shape of `{name}` must be a list of sizes.")
    count = math.prod(shape)
    if ("data" in tensor) == (binary is not None):
        raise RequestError(f"`{name}` must have either data or a binary_data_size.")
    if binary is None:
        array = from_json.array(tensor["data"], spec.dtype)
    else:
        array = binary_tensors.from_bytes(name, binary, dtype, count)
    with contextlib.suppress(ValueError):
        if array.ndim == 1 or list(array.shape) == shape:
            return array.reshape(shape)
    raise RequestError(
        f"`{name}` has the shape {shape}, of {count} elements, but its data have {array.size}, in "
        f"lists of the sizes {list(array.shape)}."
    )


def _written(name, array, length):
    """An output as JSON, in pieces; of binary ones only how many bytes they have."""
    head = {
        "name": name,
        "datatype": binary_tensors.datatype(array.dtype),
        "shape": list(array.shape),
    }
    if length is not None:
        yield to_json.encode({**head, "parameters": {"binary_data_size": length}})
        return
    yield to_json.encode(head)[:-1] + b', "data": '
    yield from to_json.values(array.reshape(-1), name.endswith("_bytes"))
    yield b"}"


def _joined(head, tensors):
    yield head + b', "outputs": ['
    for number, pieces in enumerate(tensors):
        yield b", " if number else b""
        yield from pieces
    yield b"]}"
