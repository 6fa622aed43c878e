"""A folder of pictures with classes: one subfolder of PNG and JPEG files a class."""

import collections
import hashlib
import os
import pathlib

from pipelines.picture_files import ENDINGS


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
