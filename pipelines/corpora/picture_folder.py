"""A folder of pictures with classes: one subfolder of PNG and JPEG files a class."""

import collections
import hashlib
import os
import pathlib
from collections.abc import Sequence

import numpy as np

from pipelines.batches.picture_files import ENDINGS, UnreadablePicture, read
from pipelines.dropped import Dropped


def files_of(folder: str | os.PathLike) -> dict[str, list[pathlib.Path]]:
    """List the PNG and JPEG files of each class, both in the order of their names.

    Args:
        folder: that holds the subfolders. Other files in them are passed over.

    Returns:
        Name of a class -> its files; none for a subfolder without such files.

    Raises:
        FileNotFoundError: if there is no such folder.
    """
    place = pathlib.Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(
            f"there is no folder {place}. It must have a subfolder of PNG or JPEG files for each "
            "class."
        )
    classes = sorted(one for one in place.iterdir() if one.is_dir())
    return {
        subfolder.name: sorted(
            one for one in subfolder.iterdir() if one.is_file() and one.suffix.lower() in ENDINGS
        )
        for subfolder in classes
    }


def passed_over(folder: str | os.PathLike) -> dict[str, int]:
    """How many files of the subfolders have another ending, by the ending in small letters."""
    files = (one for one in pathlib.Path(folder).glob("*/*") if one.is_file())
    counts = collections.Counter(one.suffix.lower() or one.name for one in files)
    return {ending: count for ending, count in sorted(counts.items()) if ending not in ENDINGS}


def digest(folder: str | os.PathLike) -> str:
    """16 hexadecimal digits, equal for equal names of classes and files. The names alone decide
    which pictures are trained on, and which are tested.

    Raises:
        FileNotFoundError: as `files_of`.
    """
    names = [f"{name}/{path.name}" for name, paths in files_of(folder).items() for path in paths]
    return hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def read_all(
    paths: Sequence[pathlib.Path], dropped: Dropped | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read PNG and JPEG files of one size.

    Args:
        paths: of the files.
        dropped: counts those that cannot be read; None: they are refused.

    Returns:
        uint8 (files, H, W, C); C is 1 if all of them are grey, else 3. And whether each file could
        be read, booleans (files,); its pixels are 0 else.

    Raises:
        ValueError: if one has another size than the first, or none can be read.
    """
    dropped = Dropped(strict=True) if dropped is None else dropped
    together = None
    is_read = np.zeros(len(paths), bool)
    for number, path in enumerate(paths):
        try:
            pixels = read(path, 3)
        except UnreadablePicture as error:
            dropped.leave_out("unreadable", str(path), str(error))
            continue
        if together is None:
            together = np.zeros((len(paths), *pixels.shape), np.uint8)
            first = path
        if pixels.shape != together.shape[1:]:
            height, width = together.shape[1:3]
            came = " x ".join(map(str, pixels.shape[:2]))
            raise ValueError(
                f"{path} must be {height} x {width} pixels, as {first} is. Received: {came}. "
                "Resize it."
            )
        together[number] = pixels
        is_read[number] = True
    if together is None:
        raise ValueError(f"none of the {len(paths)} files such as {paths[0]} can be read.")
    is_grey = (together == together[..., :1]).all()
    return (together[..., :1].copy() if is_grey else together), is_read
