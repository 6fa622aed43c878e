"""The numbered versions of a SavedModel in one folder, as TF Serving lays them out:
`saved_models/<name>/<version>/`.
"""

import os
import pathlib


def newest_version(folder: str | os.PathLike) -> int | None:
    """The highest number among the SavedModels in a folder; None if there is none."""
    names = [path.parent.name for path in pathlib.Path(folder).glob("*/saved_model.pb")]
    return max((int(name) for name in names if _is_number(name)), default=None)


def next_version(folder: str | os.PathLike) -> int:
    """The number after all that are taken, also by folders that hold no SavedModel."""
    return 1 + max(
        (int(path.name) for path in pathlib.Path(folder).glob("*") if _is_number(path.name)),
        default=0,
    )


def _is_number(name):
    return name.isascii() and name.isdigit()
