"""The Open Inference Protocol's names of data types, and its binary tensor data extension: numbers
are little-endian, and each element of a BYTES tensor follows its length.
"""

import struct
from collections.abc import Iterator

import numpy as np

from keras_transformer.server.options import RequestError

# NumPy's names of types and the protocol's, where these are not NumPy's in capitals.
DATATYPES = {"float16": "FP16", "float32": "FP32", "float64": "FP64"}
DATATYPES |= {"object": "BYTES", "bfloat16": "BF16"}
LENGTH = struct.Struct("<I")


def datatype(dtype: np.dtype) -> str:
    return "BYTES" if dtype.kind == "S" else DATATYPES.get(dtype.name, dtype.name.upper())


def from_bytes(name: str, binary: bytes, dtype: np.dtype, count: int) -> np.ndarray:
    """Read the `count` elements of an input from its bytes. Errors mention its name."""
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
    end = 0
    while end < len(binary):
        begin = end + LENGTH.size
        end = begin
        if begin <= len(binary):
            end += LENGTH.unpack_from(binary, begin - LENGTH.size)[0]
        if end > len(binary):
            raise RequestError(f"The bytes of `{name}` end within an element.")
        yield binary[begin:end]


def to_bytes(array: np.ndarray) -> bytes:
    if array.dtype != object and array.dtype.kind != "S":
        return array.tobytes()
    return b"".join(LENGTH.pack(len(element)) + element for element in array.reshape(-1))
