"""PNG files as arrays of pixels."""

import os
import pathlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf


def read(path: str | os.PathLike, channels: int = 0) -> np.ndarray:
    """Read a PNG file.

    Args:
        path: the file.
        channels: 1 for grey, 3 for colour, which it is converted to; 0: as the file has it.

    Returns:
        uint8 (H, W, C).

    Raises:
        ValueError: if it is damaged, or no PNG.
        OSError: if it cannot be read.
    """
    content = pathlib.Path(path).read_bytes()
    try:
        return tf.io.decode_png(content, channels).numpy()
    except tf.errors.InvalidArgumentError as error:
        raise ValueError(
            f"{path} is no PNG file that can be read. Save it again as PNG."
        ) from error


def write(path: str | os.PathLike, pixels: np.ndarray) -> None:
    """Write pixels, uint8 (H, W, C), as a PNG file."""
    pathlib.Path(path).write_bytes(tf.io.encode_png(pixels).numpy())


def read_all(paths: Sequence[pathlib.Path]) -> np.ndarray:
    """Read PNG files of one size.

    Returns:
        uint8 (files, H, W, C); C is 1 if all of them are grey, else 3.

    Raises:
        ValueError: if one has another size than the first, or cannot be read.
    """
    pictures = []
    for path in paths:
        pictures.append(read(path, 3))
        if pictures[-1].shape != pictures[0].shape:
            height, width, _ = pictures[0].shape
            came = " x ".join(map(str, pictures[-1].shape[:2]))
            raise ValueError(
                f"{path} must be {height} x {width} pixels, as {paths[0]} is. Received: {came}. "
                "Resize it."
            )
    together = np.stack(pictures)
    is_grey = (together == together[..., :1]).all()
    return together[..., :1].copy() if is_grey else together
