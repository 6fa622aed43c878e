"""The numbered versions of a SavedModel in one folder, as TF Serving lays them out:
`saved_models/<name>/<version>/`.

`00000001` is version 1. Where `1` lies beside it, that is version 1, as in TF Serving.
"""

import os
import pathlib
from collections.abc import Iterable

# TF Serving's numbers have 64 bits.
MOST = 2**63 - 1


def newest_version(folder: str | os.PathLike) -> pathlib.Path | None:
    """The folder of the SavedModel with the highest number; None if there is none."""
    files = pathlib.Path(folder).glob("*/saved_model.pb")
    versions = _by_number(file.parent for file in files)
    return versions[max(versions)] if versions else None


def taken_numbers(folder: str | os.PathLike) -> dict[int, pathlib.Path]:
    """All that is named by a number in a folder, also what holds no SavedModel, by its number."""
    return _by_number(pathlib.Path(folder).glob("*"))


def number_of(path: pathlib.Path) -> int | None:
    """The version that a path is; None if its name is no version's."""
    name = path.name
    is_number = name.isascii() and name.isdigit() and int(name) <= MOST
    return int(name) if is_number else None


def _by_number(paths: Iterable[pathlib.Path]) -> dict[int, pathlib.Path]:
    versions = {number_of(path): path for path in sorted(paths)}
    versions.pop(None, None)
    return versions
