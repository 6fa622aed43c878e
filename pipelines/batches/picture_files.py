"""PNG and JPEG files as arrays of pixels. Training, commands and SavedModels all decode here, and
see the same pixels. A folder of pictures has one subfolder for each class.

Transparent pictures are laid over white, because drawings often stand in the alpha channel alone.
The sides are read from the header before a pixel is decoded, because a small file may hold a huge
picture. A JPEG file is turned as its camera notes in EXIF (JEITA CP-3451, tag 0x0112).
"""

import collections
import hashlib
import os
import pathlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from pipelines.dropped import Dropped

# Endings of the files that are read, in lower case.
ENDINGS = (".png", ".jpg", ".jpeg", ".jpe", ".jfif")
# A larger picture is not decoded: in colour, this one takes 50 MB.
MOST_PIXELS = 2**24
PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"
# In a PNG file, after its mark and a length and a name of 4 bytes each: width and height in
# big-endian order, the bits of a number, and the kind. Two kinds have an alpha channel.
SIZE_AT = 16
KIND_AT = 25
WITH_ALPHA = (4, 6)
# In a JPEG file: the segments of EXIF and of the pixels, how EXIF begins, and the tag of the
# orientation; from `TRANSPOSED` on, rows and columns are swapped.
APP1 = 0xFFE1
SCAN = 0xFFDA
EXIF = int.from_bytes(b"Exif", "big")
ORIENTATION = 0x0112
TRANSPOSED = 5
# Channels of a JPEG file in CMYK, whose colours depend on a printer.
CMYK = 4


class UnreadablePicture(ValueError):
    """A file that holds no picture, or only the beginning of one."""


def size_of(content: tf.Tensor) -> tf.Tensor:
    """Return height and width of a picture, int32 (2,), from the header of a PNG or JPEG file,
    whose bytes are a string (). Other files are refused, and so is CMYK.
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
        sides = tf.identity(shape[:2])
    return tf.where(_orientation(content) >= TRANSPOSED, sides[::-1], sides)


def _size_of_png(content):
    sides = _header(content, SIZE_AT, 8)
    return tf.io.decode_raw(sides, tf.int32, little_endian=False)[::-1]


def _header(content, start, count):
    """Return some bytes of a file's beginning; zeros where it is shorter."""
    return tf.strings.substr(tf.strings.join([content, "\0" * (start + count)]), start, count)


@tf.function(input_signature=[tf.TensorSpec([], tf.string)], autograph=False)
def _orientation(content):
    """Return a JPEG file's orientation, int64 from 1 (as it is) to 8; 1 if it does not say it."""
    numbers = tf.cast(tf.io.decode_raw(content, tf.uint8), tf.int64)

    def read(places, size, is_little):
        """Return the numbers of `size` bytes at some places; 0 beyond the end."""
        places = places[..., None] + tf.range(size, dtype=tf.int64)
        inside = (places >= 0) & (places < tf.size(numbers, tf.int64))
        digits = tf.where(inside, tf.gather(numbers, tf.where(inside, places, 0)), 0)
        powers = tf.constant([256**number for number in range(size)], tf.int64)
        return tf.reduce_sum(digits * tf.where(is_little, powers, powers[::-1]), axis=-1)

    def is_before(place):
        """Whether the segment here is neither EXIF's nor the last before the pixels."""
        marker = read(place, 2, False)
        is_exif = (marker == APP1) & (read(place + 4, 4, False) == EXIF)
        return ~is_exif & (marker >= 0xFF00) & (marker != SCAN)

    [place] = tf.while_loop(
        is_before,
        lambda place: [place + 2 + tf.maximum(read(place + 2, 2, False), 2)],
        [tf.constant(2, tf.int64)],
    )
    is_exif = read(place, 2, False) == APP1
    # EXIF is a TIFF file, which says its order of bytes: entries of 12 bytes, tag and value.
    start = place + 10
    is_little = read(start, 1, False) == ord("I")
    entries = start + read(start + 4, 4, is_little)
    places = entries + 2 + 12 * tf.range(read(entries, 2, is_little))
    values = read(places + 8, 2, is_little)
    is_valid = (read(places, 2, is_little) == ORIENTATION) & (values >= 1) & (values <= 8)
    return tf.reduce_max(tf.concat([[1], values * tf.cast(is_valid & is_exif, tf.int64)], axis=0))


def _turned(pixels, orientation):
    """Rotate and mirror pixels (H, W, C) as their orientation says."""

    def is_in(*kinds):
        return tf.reduce_any(orientation == tf.constant(kinds, tf.int64))

    pixels = tf.cond(
        orientation >= TRANSPOSED, lambda: tf.transpose(pixels, [1, 0, 2]), lambda: pixels
    )
    pixels = tf.cond(is_in(2, 3, 6, 7), lambda: pixels[:, ::-1], lambda: pixels)
    return tf.cond(is_in(3, 4, 7, 8), lambda: pixels[::-1], lambda: pixels)


def decoded(content: tf.Tensor, channels: int) -> tf.Tensor:
    """Return the pixels of a picture, uint8 (H, W, C), from the bytes of a PNG or JPEG file, a
    string () whose `size_of` was checked. It is converted to C channels: 1 for grey, 3 for colour.
    """
    # The header before the pixels may name a transparent colour.
    head = tf.strings.regex_replace(content, r"IDAT\C*", "")
    kind = tf.io.decode_raw(_header(content, KIND_AT, 1), tf.uint8)[0]
    names_colour = tf.strings.regex_full_match(head, r"\C*tRNS\C*")
    is_png = tf.strings.substr(content, 0, len(PNG)) == PNG
    has_alpha = tf.reduce_any(kind == tf.constant(WITH_ALPHA, tf.uint8))
    pixels = tf.image.decode_png(content, channels)
    return tf.cond(
        is_png & (names_colour | has_alpha),
        lambda: _over_white(content, pixels),
        lambda: tf.cond(is_png, lambda: pixels, lambda: _turned(pixels, _orientation(content))),
    )


def _over_white(content, pixels):
    alpha = tf.cast(tf.image.decode_png(content, 4)[..., 3:], tf.int32)
    blended = tf.cast(pixels, tf.int32) * alpha + 255 * (255 - alpha)
    return tf.cast((blended + 127) // 255, tf.uint8)


def read(path: str | os.PathLike, channels: int) -> np.ndarray:
    """Read a PNG or JPEG file, and return its pixels as `decoded` does."""
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
        reason = ": it is in CMYK" if "CMYK" in error.message else ""
        raise UnreadablePicture(
            f"{path} is no PNG or JPEG file that can be read{reason}. Save it again."
        ) from error


def files_of(folder: str | os.PathLike) -> dict[str, list[pathlib.Path]]:
    """Return the PNG and JPEG files of each class, a subfolder, both sorted by name. Broken links
    are included, though they cannot be read, so that no other file moves to another split.
    """
    place = pathlib.Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(
            f"there is no folder {place}. It must have a subfolder of PNG or JPEG files for each "
            "class."
        )
    classes = sorted(path for path in place.iterdir() if path.is_dir())
    return {
        subfolder.name: sorted(
            path
            for path in subfolder.iterdir()
            if path.suffix.lower() in ENDINGS and (path.is_file() or not path.exists())
        )
        for subfolder in classes
    }


def passed_over(folder: str | os.PathLike) -> dict[str, int]:
    """Count the files of the subfolders with other endings, by the ending in lower case."""
    files = (path for path in pathlib.Path(folder).glob("*/*") if path.is_file())
    counts = collections.Counter(path.suffix.lower() or path.name for path in files)
    return {ending: count for ending, count in sorted(counts.items()) if ending not in ENDINGS}


def digest(folder: str | os.PathLike) -> str:
    """Return 16 hexadecimal digits, equal for equal names of classes and files. The names alone
    decide which pictures are trained on, and which are tested.
    """
    names = [f"{name}/{path.name}" for name, paths in files_of(folder).items() for path in paths]
    return hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def read_all(
    paths: Sequence[pathlib.Path], dropped: Dropped | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read PNG and JPEG files of one size. `dropped` counts those that cannot be read; None: the
    first of them raises an error.

    Returns uint8 (files, H, W, C), where C is 1 if all pictures are grey, else 3; and whether each
    file could be read, booleans (files,): otherwise its pixels are 0.
    """
    dropped = Dropped(strict=True) if dropped is None else dropped
    pictures = None
    is_read = np.zeros(len(paths), bool)
    for number, path in enumerate(paths):
        try:
            pixels = read(path, 3)
        except (UnreadablePicture, FileNotFoundError) as error:
            dropped.leave_out("unreadable", str(path), str(error))
            continue
        if pictures is None:
            pictures = np.zeros((len(paths), *pixels.shape), np.uint8)
            first = path
        if pixels.shape != pictures.shape[1:]:
            height, width = pictures.shape[1:3]
            size = " x ".join(map(str, pixels.shape[:2]))
            raise ValueError(
                f"{path} must be {height} x {width} pixels, as {first} is. Received: {size}. "
                "Resize it."
            )
        pictures[number] = pixels
        is_read[number] = True
    if pictures is None:
        raise ValueError(f"none of the {len(paths)} files such as {paths[0]} can be read.")
    is_grey = (pictures == pictures[..., :1]).all()
    return (pictures[..., :1].copy() if is_grey else pictures), is_read
