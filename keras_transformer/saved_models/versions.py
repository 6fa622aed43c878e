"""The numbered versions of a SavedModel in one folder, as TF Serving lays them out:
`saved_models/<name>/<version>/`.

`00000001` is version 1, unless `1` lies beside it, as in TF Serving.
"""

import contextlib
import os
import pathlib
from collections.abc import Iterable

# TF Serving's numbers have 64 bits.
MOST = 2**63 - 1
# The file by which a SavedModel is known.
GRAPH = "saved_model.pb"
# The file by which a folder is known that runs without TensorFlow, by its format.
DECODERS = {"onnx": "decoder.onnx", "litert": "decoder.tflite"}


def newest_version(folder: str | os.PathLike) -> pathlib.Path | None:
    """Return the folder of the version with the highest number."""
    versions = versions_in(folder)
    return versions[max(versions)] if versions else None


def versions_in(folder: str | os.PathLike) -> dict[int, pathlib.Path]:
    """Return the folders of all versions, SavedModels or others, by number."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return _by_number(filter(_may_be_version, pathlib.Path(folder).iterdir()))
    return {}


def _may_be_version(path):
    """Whether a folder has a graph, or hides what it has: to read it then raises an error."""
    names = (GRAPH, *DECODERS.values())
    is_hidden = path.is_dir() and not os.access(path, os.X_OK)
    return is_hidden or any(os.path.exists(path / name) for name in names)


def portable_format(folder: pathlib.Path) -> str | None:
    """Return the format of a folder that runs without TensorFlow; None of others. A SavedModel is
    one, whatever lies beside its graph.
    """
    if os.path.exists(folder / GRAPH):
        return None
    return next((kind for kind, file in DECODERS.items() if os.path.exists(folder / file)), None)


def numbered_paths(folder: str | os.PathLike) -> dict[int, pathlib.Path]:
    """Return everything in a folder that is named by a number, also without a SavedModel in it."""
    return _by_number(pathlib.Path(folder).glob("*"))


def _by_number(paths: Iterable[pathlib.Path]) -> dict[int, pathlib.Path]:
    return {
        int(path.name): path
        for path in sorted(paths)
        if path.name.isascii() and path.name.isdigit() and int(path.name) <= MOST
    }
