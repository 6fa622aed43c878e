"""The files of a folder in Hugging Face's layout: what its settings say, and which of their keys
are not used; what the headers of its `*.safetensors` say, and the arrays, read one by one.
"""

import math
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from keras_transformer.imports.family import require_finite, require_shape
from pipelines import json_files, needing
from pipelines.json_files import Schema, quote, regular_file

INDEX = "model.safetensors.index.json"
ENDING = ".safetensors"
WHOLE = "Save the model again, all its files."
# Numbers that are read at once.
AT_ONCE = 2**24
FLOATS = ("F64", "F32", "F16", "BF16")


class SettingsFiles:
    """What the JSON files of a folder say, by schemas; `unused` are keys that no schema knows, by
    file.
    """

    def __init__(self, folder: str | os.PathLike):
        self.path = pathlib.Path(folder)
        self.unused: dict[str, list[str]] = {}

    def read(
        self, schema: type[Schema], name: str, remedy: str, most_bytes: int = json_files.MOST_BYTES
    ) -> Any:
        """What the file of a name says by its schema, whose defaults stand for a missing file."""
        try:
            document = json_files.read_object(self.path / name, remedy, most_bytes)
        except FileNotFoundError:
            document = {}
        return self.of(schema, document, name, remedy)

    def of(
        self,
        schema: type[Schema],
        document: Mapping[str, Any],
        name: str,
        remedy: str,
        part: str = "",
    ) -> Any:
        """What an object says of the file of a name, at the key `part` or as the whole file."""
        path = self.path / name
        place = f"`{part}` of {path}" if part else path
        read, unknown = json_files.settings(schema, document, place, remedy)
        inside = f"{part}." if part else ""
        names = self.unused.setdefault(name, [])
        names += [inside + key for key in unknown if inside + key not in names]
        return read


class Index(Schema):
    """The file of each weight, where there are several files."""

    HARMLESS = ("metadata",)

    weight_map: dict[str, str]


class WeightFiles(Mapping):
    """Arrays of float32 of one or several files in a folder, by the names that a family gives those
    of the files. `unused` are files of weights that the index does not name.
    """

    def __init__(self, folder: pathlib.Path, plain_name: Callable[[str], str] = str):
        self._folder = folder
        # Plain name -> (file, its name there, shape, type).
        self._places: dict[str, tuple[pathlib.Path, str, tuple[int, ...], str]] = {}
        self._read: set[str] = set()
        all_paths = sorted(folder.glob(f"*{ENDING}"))
        index = _index(folder)
        paths = sorted({folder / name for name in index.values()}) if index else all_paths
        if not paths:
            raise FileNotFoundError(
                f"{folder} has no weights: a file that ends in {ENDING}. It has "
                f"{listed(folder)}. Save the model again with safe_serialization=True."
            )
        self.unused = [path.name for path in all_paths if path not in paths]
        for path in paths:
            self._add(path, plain_name)
        for name, file in index.items():
            if self._places.get(plain_name(name), (None,))[0] != folder / file:
                raise ValueError(
                    f"{folder / file} lacks the weight {quote(name)}, which {folder / INDEX} says "
                    f"it has. {WHOLE}"
                )

    def _add(self, path, plain_name):
        with _opened(path) as file:
            names = {name: name for name in list(file.keys())}
            # One that another shares its numbers with is stored once, and named here.
            for name, kept in (file.metadata() or {}).items():
                if kept in names:
                    names.setdefault(name, kept)
            for name, stored in names.items():
                plain = plain_name(name)
                if plain in self._places:
                    raise ValueError(
                        f"{self._folder} must have each weight once. Received: {quote(plain)} in "
                        f"{self._places[plain][0].name} and in {path.name}. Delete the file that "
                        "is not the model's."
                    )
                part = file.get_slice(stored)
                self._places[plain] = (path, stored, tuple(part.get_shape()), part.get_dtype())

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def check(
        self, name: str, shape: tuple[int, ...], config: str | os.PathLike, family: str
    ) -> None:
        """Refuse a weight whose header does not say what config.json makes of it."""
        if name not in self._places:
            raise ValueError(
                f"{self._folder} lacks the weight '{name}', which a model of the family {family} "
                f"has that is as {config} says. Check that the folder is whole."
            )
        path, stored, found, dtype = self._places[name]
        weight = f"{path}: the weight {quote(stored)}"
        require_shape(found, shape, weight, f"{config} and the weights belong together")
        if dtype not in FLOATS:
            raise ValueError(
                f"{weight} must be of {', '.join(FLOATS)}. Received: {dtype}. Save the model in "
                "float32."
            )

    def __getitem__(self, name: str) -> np.ndarray:
        path, stored, shape, _ = self._places[name]
        self._read.add(name)
        weight = f"{path}: the weight {quote(stored)}"
        array = np.empty(shape, np.float32)
        # What a file has mapped counts as memory until it is closed.
        step = max(AT_ONCE // max(math.prod(shape[1:]), 1), 1)
        for begin in range(0, shape[0], step):
            rows = slice(begin, min(begin + step, shape[0]))
            with _opened(path) as file, np.errstate(all="ignore"):
                part = np.asarray(file.get_slice(stored)[rows], np.float32)
            array[rows] = require_finite(part, weight, "Import a model that was saved whole.")
        return array

    def unread(self) -> list[str]:
        """Names of the weights that were never asked for nor share their numbers with one."""
        read = {self._places[name] for name in self._read}
        return [name for name, place in self._places.items() if place not in read]


def required_file(folder: pathlib.Path, name: str, remedy: str) -> pathlib.Path:
    """A file of a folder, which must exist."""
    path = folder / name
    if not path.exists():
        raise FileNotFoundError(f"{folder} has no {name}. It has {listed(folder)}. {remedy}")
    return path


def listed(folder: pathlib.Path, most: int = 5) -> str:
    """What a folder holds, in words."""
    if not folder.is_dir():
        why = "it is a file; unpack an archive first" if folder.exists() else "it does not exist"
        return f"no files: {why}"
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(quote, names[:most])) + more if names else "no files"


def _index(folder):
    """The file of each weight by its name; none where all weights are in one file."""
    path = folder / INDEX
    try:
        document = json_files.read_object(path, WHOLE)
    except FileNotFoundError:
        return {}
    index, _ = json_files.settings(Index, document, path, WHOLE)
    for name in index.weight_map.values():
        if pathlib.Path(name).name != name or not name.endswith(ENDING) or "\0" in name:
            raise ValueError(
                f"`weight_map` of {path} must name files beside it that end in {ENDING}. Received: "
                f"{quote(name)}. {WHOLE}"
            )
        if not (folder / name).exists():
            raise FileNotFoundError(f"{folder / name} does not exist, and {path} names it. {WHOLE}")
    return index.weight_map


def _opened(path):
    with needing("imports", f"reading {path}"):
        from safetensors import SafetensorError, safe_open
    try:
        return safe_open(regular_file(path), framework="numpy")
    except (SafetensorError, OSError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} is damaged ({reason}). {WHOLE}") from error
