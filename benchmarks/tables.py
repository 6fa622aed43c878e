"""Tables of results, and the settings that kept results depend on.

A benchmark that resumes must not reuse results of other settings than its own. The settings of a
folder lie beside it, in `<folder>.settings.json`.
"""

import json
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from pipelines.whole_files import write_json


def print_table(columns: Sequence[str], rows: Iterable[Sequence]) -> None:
    """Print rows under the names of their columns, in Markdown, each as soon as it comes."""
    print("\n| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


def keep_settings(folder: str | os.PathLike, settings: Mapping) -> None:
    """Write the settings of a folder before anything lies in it; later, refuse others.

    Args:
        folder: of results, or of a run.
        settings: by name, JSON.

    Raises:
        SystemExit: if it was begun with others, each of which is named, or with unknown ones.
    """
    folder = pathlib.Path(folder)
    path = folder.with_name(f"{folder.name}.settings.json")
    if not (folder.is_dir() and any(folder.iterdir())):
        write_json(path, dict(settings))
        return
    elsewhere = "Delete it, or name another folder for the results."
    if not path.is_file():
        problem = f"{folder} has results of unknown settings: there is no {path.name} beside it."
        raise SystemExit(f"{problem} {elsewhere}")
    earlier = json.loads(path.read_text(encoding="utf-8"))
    differences = [
        f"{name}={earlier.get(name)!r}, not {settings.get(name)!r}"
        for name in dict.fromkeys([*earlier, *settings])
        if earlier.get(name) != settings.get(name)
    ]
    if differences:
        raise SystemExit(f"{folder} was made with {'; '.join(differences)}. {elsewhere}")
