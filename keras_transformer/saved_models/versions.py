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
# What a folder that runs without TensorFlow has, by its format.
DECODERS = {"onnx": "decoder.onnx", "litert": "decoder.tflite"}


def newest_version(folder: str | os.PathLike) -> pathlib.Path | None:
    """The folder of the version with the highest number."""
    versions = versions_in(folder)
    return versions[max(versions)] if versions else None


def versions_in(folder: str | os.PathLike) -> dict[int, pathlib.Path]:
    """The folders of all versions, SavedModels or others, by number."""
    files = (GRAPH, *DECODERS.values())
    found = (path for file in files for path in pathlib.Path(folder).glob(f"*/{file}"))
    return _by_number(path.parent for path in found)


def portable_format(folder: pathlib.Path) -> str | None:
    """The format of what runs in a folder without TensorFlow; None if nothing does."""
    return next((kind for kind, file in DECODERS.items() if (folder / file).exists()), None)


def taken_numbers(folder: str | os.PathLike) -> dict[int, pathlib.Path]:
    """All that is named by a number in a folder, also what holds no SavedModel, by its number."""
    return _by_number(pathlib.Path(folder).glob("*"))


def _by_number(paths: Iterable[pathlib.Path]) -> dict[int, pathlib.Path]:
    return {
        int(path.name): path
        for path in sorted(paths)
        if path.name.isascii() and path.name.isdigit() and int(path.name) <= MOST
    }
