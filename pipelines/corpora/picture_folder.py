"""A folder of pictures with classes: one subfolder of PNG files a class."""

import hashlib
import os
import pathlib


def files_of(folder: str | os.PathLike) -> dict[str, list[pathlib.Path]]:
    """List the PNG files of each class, both in the order of their names.

    Args:
        folder: that holds the subfolders. Other files in them are passed over.

    Returns:
        Name of a class -> its files; none for a subfolder without PNG files.

    Raises:
        FileNotFoundError: if there is no such folder.
    """
    place = pathlib.Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(
            f"there is no folder {place}. It must have a subfolder of PNG files for each class."
        )
    classes = sorted(one for one in place.iterdir() if one.is_dir())
    return {
        subfolder.name: sorted(
            one for one in subfolder.iterdir() if one.is_file() and one.suffix.lower() == ".png"
        )
        for subfolder in classes
    }


def digest(folder: str | os.PathLike) -> str:
    """16 hexadecimal digits, equal for equal names of classes and files. The names alone decide
    which pictures are trained on, and which are tested.

    Raises:
        FileNotFoundError: as `files_of`.
    """
    names = [f"{name}/{path.name}" for name, paths in files_of(folder).items() for path in paths]
    return hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:16]
