"""Files of MNIST's format, idx."""

import gzip
import pathlib
import struct
import zlib

import numpy as np


def idx(path: pathlib.Path) -> np.ndarray:
    """Read a file of bytes in the format idx, [.gz]: 2 bytes 0, the type 8, the number of
    dimensions, their sizes in big-endian order, and the bytes.

    Raises:
        ValueError: if it is damaged or holds other numbers than bytes.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            content = file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged ({error}). Fetch it again.") from error
    if content[:3] != b"\0\0\x08" or len(content) < 4 + 4 * content[3]:
        raise ValueError(f"{path} is no idx file of bytes. Fetch it again.")
    shape = struct.unpack(f">{content[3]}I", content[4 : 4 + 4 * content[3]])
    numbers = np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape))
    if numbers.size != np.prod(shape):
        raise ValueError(
            f"{path} must hold {np.prod(shape)} bytes after its header. Received: {numbers.size}. "
            "Fetch it again."
        )
    return numbers.reshape(shape).copy()
