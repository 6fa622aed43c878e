"""The numbered versions of a SavedModel in one folder, as TF Serving lays them out:
`saved_models/<name>/<version>/`.

`00000001` is version 1. Where `1` lies beside it, that is version 1, as in TF Serving.
"""

import os
import pathlib
from collections.abc import Iterable

# TF Serving's numbers have 64 bits.
MOST = 2**63 - 1
# What a SavedModel has.
GRAPH = "saved_model.pb"


def newest_version(folder: str | os.PathLike, file: str = GRAPH) -> pathlib.Path | None:
    """The folder of the SavedModel with the highest number, or of what else has a file; None if
    there is none.
    """
    versions = versions_in(folder, file)
    return versions[max(versions)] if versions else None


def versions_in(folder: str | os.PathLike, file: str = GRAPH) -> dict[int, pathlib.Path]:
    """The folders of all SavedModels in a folder, or of all that has a file, by number."""
    files = pathlib.Path(folder).glob(f"*/{file}")
    return _by_number(file.parent for file in files)


def taken_numbers(folder: str | os.PathLike) -> dict[int, pathlib.Path]:
    """All that is named by a number in a folder, also what holds no SavedModel, by its number."""
    return _by_number(pathlib.Path(folder).glob("*"))


def _by_number(paths: Iterable[pathlib.Path]) -> dict[int, pathlib.Path]:
    return {
        int(path.name): path
        for path in sorted(paths)
        if path.name.isascii() and path.name.isdigit() and int(path.name) <= MOST
    }
