"""The files of settings in a folder, and which of their keys are not used."""

import os
import pathlib
from collections.abc import Mapping
from typing import Any

from pipelines import json_files


class SettingsFiles:
    """What the JSON files of a folder say, by schemas.

    Args:
        folder: the folder.

    Attributes:
        path: the folder.
        unused: keys that no schema knows, by the names of the files that were read.
    """

    def __init__(self, folder: str | os.PathLike):
        self.path = pathlib.Path(folder)
        self.unused: dict[str, list[str]] = {}

    def read(
        self,
        schema: type[json_files.Schema],
        name: str,
        remedy: str,
        most_bytes: int = json_files.MOST_BYTES,
    ) -> Any:
        """What the file of a name says; a schema's defaults if there is none.

        Raises:
            ValueError: as `json_files.read_object` and `json_files.settings`.
        """
        try:
            document = json_files.read_object(self.path / name, remedy, most_bytes)
        except FileNotFoundError:
            document = {}
        return self.of(schema, document, name, remedy)

    def of(
        self,
        schema: type[json_files.Schema],
        document: Mapping[str, Any],
        name: str,
        remedy: str,
        part: str = "",
    ) -> Any:
        """What an object says that stands in a file.

        Args:
            schema: of the object.
            document: the object.
            name: of the file.
            remedy: what to do.
            part: the key that it stands at, if it is not the whole file.

        Raises:
            ValueError: naming the key.
        """
        path = self.path / name
        place = f"`{part}` of {path}" if part else path
        read, unknown = json_files.settings(schema, document, place, remedy)
        inside = f"{part}." if part else ""
        names = self.unused.setdefault(name, [])
        names += [inside + key for key in unknown if inside + key not in names]
        return read
