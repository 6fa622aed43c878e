"""PNG and JPEG files as arrays of pixels. Training, commands and SavedModels decode here alone, so
that a picture is the same to all of them.

What is transparent is laid over white: drawings often stand in the alpha channel alone. The sides
are read from the header before a pixel is decoded, for a small file may hold a huge picture. The
orientation that a camera notes in EXIF is not applied.
"""

import os
import pathlib

import numpy as np
import tensorflow as tf

from pipelines.whole_files import errors_naming

# Endings of the files that are read, in small letters.
ENDINGS = (".png", ".jpg", ".jpeg", ".jpe", ".jfif")
# A file with more is not decoded: as bytes in colour it takes 50 MB.
MOST_PIXELS = 2**24
PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
# In a PNG file: after its mark, and a length and a name of 4 bytes, width and height in big-endian
# order, the bits of a number, and the kind, of which two have an alpha channel.
SIZE_AT = 16
KIND_AT = 25
WITH_ALPHA = (4, 6)
# Channels of a JPEG file in CMYK, whose colours depend on a printer.
CMYK = 4


class UnreadablePicture(ValueError):
    """A file that holds no picture, or only the beginning of one."""


def size_of(content: tf.Tensor) -> tf.Tensor:
    """Height and width of a picture, int32 (2,), from its header.

    Args:
        content: bytes of a PNG or JPEG file, a string (). Others are refused, and so is CMYK.
    """
    is_jpeg = tf.strings.substr(content, 0, len(JPEG)) == JPEG
    is_png = tf.strings.substr(content, 0, len(PNG)) == PNG
    is_known = tf.debugging.Assert(
        is_jpeg | is_png,
        ["a picture must be the bytes of a PNG or JPEG file. Save it again as one."],
        summarize=1,
    )
    with tf.control_dependencies([is_known]):
        return tf.cond(is_jpeg, lambda: _size_of_jpeg(content), lambda: _size_of_png(content))


def _size_of_jpeg(content):
    shape = tf.image.extract_jpeg_shape(content)
    is_rgb = tf.debugging.Assert(
        shape[2] != CMYK, ["a JPEG file must not be in CMYK. Save it in RGB."], summarize=1
    )
    with tf.control_dependencies([is_rgb]):
        return tf.identity(shape[:2])


def _size_of_png(content):
    sides = _header(content, SIZE_AT, 8)
    return tf.io.decode_raw(sides, tf.int32, little_endian=False)[::-1]


def _header(content, start, count):
    """Some bytes of a file's beginning; zeros where it is shorter."""
    return tf.strings.substr(tf.strings.join([content, "\0" * (start + count)]), start, count)


def decoded(content: tf.Tensor, channels: int) -> tf.Tensor:
    """The pixels of a picture, uint8 (H, W, C).

    Args:
        content: bytes of a PNG or JPEG file, a string (), whose `size_of` was checked.
        channels: C: 1 for grey, 3 for colour, which it is converted to.
    """
    # A colour that is transparent is named before the pixels.
    head = tf.strings.regex_replace(content, r"IDAT\C*", "")
    kind = tf.io.decode_raw(_header(content, KIND_AT, 1), tf.uint8)[0]
    names_colour = tf.strings.regex_full_match(head, r"\C*tRNS\C*")
    is_png = tf.strings.substr(content, 0, len(PNG)) == PNG
    has_alpha = tf.reduce_any(kind == tf.constant(WITH_ALPHA, tf.uint8))
    pixels = tf.image.decode_png(content, channels)
    return tf.cond(
        is_png & (names_colour | has_alpha),
        lambda: _over_white(content, pixels),
        lambda: pixels,
    )


def _over_white(content, pixels):
    alpha = tf.cast(tf.image.decode_png(content, 4)[..., 3:], tf.int32)
    laid = tf.cast(pixels, tf.int32) * alpha + 255 * (255 - alpha)
    return tf.cast((laid + 127) // 255, tf.uint8)


def read(path: str | os.PathLike, channels: int) -> np.ndarray:
    """Read a PNG or JPEG file.

    Args:
        path: the file.
        channels: 1 for grey, 3 for colour, which it is converted to.

    Returns:
        uint8 (H, W, C).

    Raises:
        UnreadablePicture: a ValueError, if it is damaged, in CMYK, or another kind of file.
        ValueError: if it has more than `MOST_PIXELS` pixels.
        OSError: if it cannot be read.
    """
    content = tf.constant(pathlib.Path(path).read_bytes())
    try:
        height, width = size_of(content).numpy().tolist()
        if height * width > MOST_PIXELS:
            raise ValueError(
                f"{path} must have at most {MOST_PIXELS:,} pixels. Received: {height} x {width}. "
                "Resize it."
            )
        return decoded(content, channels).numpy()
    except tf.errors.InvalidArgumentError as error:
        raise UnreadablePicture(
            f"{path} is no PNG or JPEG file that can be read{_why(error)}. Save it again."
        ) from error


def _why(error):
    """In CMYK, or nothing: TensorFlow's reasons are those of libraries."""
    return ": it is in CMYK" if "CMYK" in error.message else ""


def write(path: str | os.PathLike, pixels: np.ndarray) -> None:
    """Write pixels, uint8 (H, W, C), as a PNG file."""
    with errors_naming(path):
        pathlib.Path(path).write_bytes(tf.io.encode_png(pixels).numpy())
