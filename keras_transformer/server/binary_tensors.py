"""Arrays as the Open Inference Protocol names their types, and as its binary tensor data extension
has them: numbers the lowest byte first, and each element of a BYTES tensor behind its length.
"""

import struct
from collections.abc import Iterator

import numpy as np

from keras_transformer.server.options import RequestError

# NumPy's names of types, and the protocol's where it is not the same in capitals.
DATATYPES = {"float16": "FP16", "float32": "FP32", "float64": "FP64"}
DATATYPES |= {"object": "BYTES", "bfloat16": "BF16"}
LENGTH = struct.Struct("<I")


def datatype(dtype: np.dtype) -> str:
    return "BYTES" if dtype.kind == "S" else DATATYPES.get(dtype.name, dtype.name.upper())


def from_bytes(name: str, binary: bytes, dtype: np.dtype, count: int) -> np.ndarray:
    """The elements of an input, which has a name for the errors and should have so many."""
    if dtype.kind == "O":
        return np.array(list(_elements(name, binary)), object)
    if len(binary) != count * dtype.itemsize:
        raise RequestError(
            f"`{name}` must have {count} elements of {dtype.itemsize} bytes each. Received: "
            f"{len(binary)} bytes."
        )
    if dtype.kind == "b":
        return np.frombuffer(binary, np.uint8) != 0
    return np.frombuffer(binary, dtype)


def _elements(name, binary) -> Iterator[bytes]:
    at = 0
    while at < len(binary):
        begin = at + LENGTH.size
        at = begin
        if begin <= len(binary):
            at += LENGTH.unpack_from(binary, begin - LENGTH.size)[0]
        if at > len(binary):
            raise RequestError(f"The bytes of `{name}` end within an element.")
        yield binary[begin:at]


def to_bytes(array: np.ndarray) -> bytes:
    if array.dtype != object and array.dtype.kind != "S":
        return array.tobytes()
    return b"".join(LENGTH.pack(len(one)) + one for one in array.reshape(-1))
