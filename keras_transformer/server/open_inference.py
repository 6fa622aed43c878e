"""The Open Inference Protocol, version 2: requests to arrays by name, and arrays to answers.

A tensor's data are in the JSON, flat or nested, or follow it as bytes (the binary tensor data
extension). The header Inference-Header-Content-Length then gives the length of the JSON.
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
# Names and types of a request's parameters that are no options of its signature.
PARAMETERS = {"signature_name": str, "glossary": dict, "timeout": int, "binary_data_output": bool}


@dataclasses.dataclass
class Inference:
    """A request that is parsed before its signature is known. By name: `tensors`, the inputs' JSON;
    `binary`, their bytes behind the JSON; `outputs`, whether each requested output is binary (None:
    by the parameter `binary_data_output`; no outputs: all are requested). `parameters` are those of
    `PARAMETERS`, `options` those of the signature. The answer repeats `id`.
    """

    tensors: dict
    binary: dict
    outputs: dict
    parameters: dict
    options: dict
    id: str | None

    @property
    def signature_name(self) -> str:
        return self.parameters.get("signature_name") or DEFAULT_SIGNATURE

    def arrays(self, signature: Signature) -> dict[str, np.ndarray]:
        """Return the inputs and options as arrays by name."""
        for name in self.outputs:
            if name not in signature.outputs:
                raise _unknown("output", name, self.signature_name, signature.outputs)
        inputs = {}
        for name, tensor in self.tensors.items():
            if name not in signature.inputs:
                raise _unknown("input", name, self.signature_name, signature.inputs)
            inputs[name] = _array(name, tensor, self.binary.get(name), signature.inputs[name])
        for name in signature.required:
            if name not in inputs:
                raise RequestError(f"`{self.signature_name}` needs the input `{name}`.")
        return with_options(inputs, self.options, self.signature_name, signature)

    def answer(
        self, outputs: dict[str, np.ndarray], model: str, version: int
    ) -> tuple[Iterator[bytes], dict[str, str]]:
        """Return the body of the answer in pieces, and its headers."""
        default = self.parameters.get("binary_data_output", False)
        requested = self.outputs or dict.fromkeys(sorted(outputs))
        blobs = {
            name: binary_tensors.to_bytes(outputs[name])
            for name, is_binary in requested.items()
            if (default if is_binary is None else is_binary)
        }
        head = {"model_name": model, "model_version": str(version)}
        head |= {} if self.id is None else {"id": self.id}
        tensors = [_output_json(name, outputs[name], blobs.get(name)) for name in requested]
        pieces = _answer_json(to_json.encode(head)[:-1], tensors)
        if not blobs:
            return pieces, {"Content-Type": "application/json"}
        document = b"".join(pieces)
        headers = {HEADER: str(len(document)), "Content-Type": "application/octet-stream"}
        return iter([document, *blobs.values()]), headers


def read(body: bytes, length: str | None) -> Inference:
    """Parse a request's body, of which the header `length` says how many bytes are JSON."""
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
        count = _parameters(tensor, f"the input `{name}`").get("binary_data_size")
        if count is None:
            continue
        if type(count) is not int or not 0 <= count <= len(rest):
            raise RequestError(
                f"binary_data_size of `{name}` must be the number of its bytes behind the JSON, "
                f"which has the length {HEADER}. {len(rest)} are left. Received: {count!r:.80}."
            )
        binary[name] = bytes(rest[:count])
        rest = rest[count:]
    if rest:
        raise RequestError(f"{len(rest)} bytes follow the data of the last binary input.")
    parameters, options = parameters_of(document)
    if not isinstance(document.get("id", ""), str):
        raise RequestError('"id" must be a string.')
    outputs = _objects(document, "outputs").items()
    return Inference(
        tensors=inputs,
        binary=binary,
        outputs={name: _is_binary(name, output) for name, output in outputs},
        parameters=parameters,
        options=options,
        id=document.get("id"),
    )


def parameters_of(document: dict) -> tuple[dict, dict]:
    """Split a request's parameters into those of `PARAMETERS` and its signature's options."""
    parameters = _parameters(document, "the request")
    for name, kind in PARAMETERS.items():
        if name in parameters and type(parameters[name]) is not kind:
            raise RequestError(
                f"The parameter `{name}` must be of type {kind.__name__}. Received: "
                f"{from_json.beginning(parameters[name])}."
            )
    if parameters.get("timeout", 0) < 0:
        raise RequestError("The parameter `timeout` must be at least 0 microseconds.")
    options = {name: value for name, value in parameters.items() if name not in PARAMETERS}
    return {name: value for name, value in parameters.items() if name in PARAMETERS}, options


def with_options(
    inputs: dict[str, np.ndarray], options: dict, name: str, signature: Signature
) -> dict[str, np.ndarray]:
    """Add options that hold for all rows to the inputs of a request to the signature `name`."""
    arrays = dict(inputs)
    for option, value in options.items():
        if option not in signature.defaults:
            raise _unknown("parameter", option, name, [*PARAMETERS, *signature.defaults])
        if option in inputs:
            raise RequestError(f"`{option}` is given twice: as an input and a parameter.")
        arrays[option] = from_json.array(value, signature.inputs[option].dtype)
    return arrays


def tensors(specs: Iterable[TensorSpec], optional: Iterable[str] = ()) -> list[dict]:
    """Describe the inputs or outputs of a signature, as in a model's metadata."""
    return [
        {
            "name": name,
            "datatype": binary_tensors.datatype(spec.dtype),
            "shape": [-1 if size is None else size for size in spec.shape or ()],
            **({"parameters": {"optional": True}} if name in optional else {}),
        }
        for name, spec in specs.items()
    ]


def _unknown(kind, name, signature_name, names):
    return RequestError(
        f"`{signature_name}` has no {kind} `{name}`. It has: {', '.join(names)}. The parameter "
        "signature_name chooses another signature."
    )


def _objects(document, key):
    """Read a list of objects with names, and return them by name."""
    objects = document.get(key, [])
    if not isinstance(objects, list) or not all(
        isinstance(tensor, dict) and isinstance(tensor.get("name"), str) for tensor in objects
    ):
        raise RequestError(f'"{key}" must be a list of objects, each with a "name".')
    by_name = {tensor["name"]: tensor for tensor in objects}
    if len(by_name) < len(objects):
        raise RequestError(f'"{key}" must have each name once.')
    return by_name


def _parameters(document, owner):
    """Return the parameters of a request, an input or an output; the owner is for the error."""
    parameters = document.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise RequestError(f'"parameters" of {owner} must be an object.')
    return parameters


def _is_binary(name, output):
    parameters = _parameters(output, f"the output `{name}`")
    if parameters.get("classification"):
        raise RequestError("The classification extension is not supported. Leave it out.")
    is_binary = parameters.get("binary_data")
    if not isinstance(is_binary, bool | None):
        raise RequestError(f"binary_data of the output `{name}` must be true or false.")
    return is_binary


def _array(name, tensor, binary, spec):
    """Read a tensor's data, in its shape."""
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
        f"the shape {list(array.shape)}."
    )


def _output_json(name, array, blob):
    """Yield an output's JSON in pieces; for a binary one, without its bytes `blob`."""
    datatype = binary_tensors.datatype(array.dtype)
    head = {"name": name, "datatype": datatype, "shape": list(array.shape)}
    if blob is not None:
        yield to_json.encode({**head, "parameters": {"binary_data_size": len(blob)}})
        return
    yield to_json.encode(head)[:-1] + b', "data": '
    yield from to_json.values(array.reshape(-1), name.endswith("_bytes"))
    yield b"}"


def _answer_json(head, tensors):
    yield head + b', "outputs": ['
    for number, pieces in enumerate(tensors):
        yield b", " if number else b""
        yield from pieces
    yield b"]}"
