"""The files of a folder in Hugging Face's layout: JSON settings, with a record of unused keys, and
`*.safetensors`, whose headers are read first and whose arrays are read one by one.
"""

import math
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from keras_transformer.imports.family import WHOLE, require_finite, require_shape
from pipelines import json_files, needing
from pipelines.json_files import Schema, quote, regular_file

INDEX = "model.safetensors.index.json"
ENDING = ".safetensors"
# Numbers of an array that are read at once.
AT_ONCE = 2**24
FLOATS = ("F64", "F32", "F16", "BF16")


class SettingsFiles:
    """The JSON files of a folder, read by schemas; `unused` has the keys that no schema knows, by
    file.
    """

    def __init__(self, folder: str | os.PathLike):
        self.path = pathlib.Path(folder)
        self.unused: dict[str, list[str]] = {}

    def read(
        self, schema: type[Schema], name: str, remedy: str, most_bytes: int = json_files.MOST_BYTES
    ) -> Any:
        """Read a file by its schema. A missing file has the schema's defaults."""
        try:
            document = json_files.read_object(self.path / name, remedy, most_bytes)
        except FileNotFoundError:
            document = {}
        return self.parse(schema, document, name, remedy)

    def parse(
        self, schema: type[Schema], document: Mapping, name: str, remedy: str, part: str = ""
    ) -> Any:
        """Convert an object, the whole file `name` or its key `part`, by a schema."""
        path = self.path / name
        place = f"`{part}` of {path}" if part else path
        settings, unknown = json_files.settings(schema, document, place, remedy)
        prefix = f"{part}." if part else ""
        unused = self.unused.setdefault(name, [])
        unused += [prefix + key for key in unknown if prefix + key not in unused]
        return settings


class Index(Schema):
    """The index of weights in several files: the file of each."""

    HARMLESS = ("metadata",)

    weight_map: dict[str, str]


def plain_name(name: str, prefix: str) -> str:
    """Return a weight's name as in PyTorch and without the model's prefix. TensorFlow has other
    names for the weights of a norm, also in the original BERT.
    """
    name = name.removeprefix(prefix).replace("LayerNorm.gamma", "LayerNorm.weight")
    return name.replace("LayerNorm.beta", "LayerNorm.bias")


class WeightFiles(Mapping):
    """Float32 arrays of a folder's safetensors files, keyed by `plain_name` of their names in the
    files. `ties` map names of tables to those under which tied ones may be stored alone, as by
    Accelerate. `unused` are weight files that the index does not name; if a model.safetensors is
    one of these, those that it names.
    """

    def __init__(self, folder: pathlib.Path, prefix: str, ties: Mapping[str, str]):
        self._folder = folder
        # Plain name -> (file, its name there, shape, type).
        self._places: dict[str, tuple[pathlib.Path, str, tuple[int, ...], str]] = {}
        self._read: set[str] = set()
        all_paths = sorted(folder.glob(f"*{ENDING}"))
        index = _index(folder)
        named = {folder / name for name in index.values()}
        paths = sorted(named) or all_paths
        if folder / f"model{ENDING}" in {*all_paths} - named:
            # A save into the folder leaves an earlier one's index, which Hugging Face ignores then.
            index = {}
            paths = sorted({*all_paths} - named)
        if not paths:
            raise FileNotFoundError(
                f"{folder} has no weights: a file that ends in {ENDING}. It has "
                f"{listed(folder)}. Save the model again with safe_serialization=True."
            )
        self.unused = [path.name for path in all_paths if path not in paths]
        for path in paths:
            self._add(path, prefix)
        for name, file in index.items():
            if self._places.get(plain_name(name, prefix), (None,))[0] != folder / file:
                raise ValueError(
                    f"{folder / file} lacks the weight {quote(name)}, which {folder / INDEX} says "
                    f"it has. {WHOLE}"
                )
        for name, stored in ties.items():
            if stored in self._places:
                self._places.setdefault(name, self._places[stored])

    def _add(self, path, prefix):
        with _opened(path) as file:
            names = {name: name for name in list(file.keys())}
            # Tied weights are stored once; the metadata maps their other names to the stored one.
            for name, stored in (file.metadata() or {}).items():
                if stored in names:
                    names.setdefault(name, stored)
            for name, stored in names.items():
                plain = plain_name(name, prefix)
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
        self, name: str, expected: tuple[int, ...], config: str | os.PathLike, family: str
    ) -> None:
        """Refuse a missing weight, and one of another type or shape than config.json implies."""
        if name not in self._places:
            raise ValueError(
                f"{self._folder} lacks the weight '{name}', which a model of the family {family} "
                f"has according to {config}. Check that the folder is complete."
            )
        path, stored, shape, dtype = self._places[name]
        weight = f"{path}: the weight {quote(stored)}"
        require_shape(shape, expected, weight, f"{config} and the weights belong together")
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
        # Pages of an open file count as memory, so it is opened for each block of rows.
        step = max(AT_ONCE // max(math.prod(shape[1:]), 1), 1)
        for begin in range(0, shape[0], step):
            rows = slice(begin, min(begin + step, shape[0]))
            with _opened(path) as file, np.errstate(all="ignore"):
                part = np.asarray(file.get_slice(stored)[rows], np.float32)
            array[rows] = require_finite(part, weight, "Import a model that was saved whole.")
        return array

    def unread(self) -> list[str]:
        """Return the names of weights that were neither read nor tied to one that was."""
        read = {self._places[name] for name in self._read}
        return [name for name, place in self._places.items() if place not in read]


def required_file(folder: pathlib.Path, name: str, remedy: str) -> pathlib.Path:
    """Return the path of a file that a folder must have."""
    path = folder / name
    if not path.exists():
        raise FileNotFoundError(f"{folder} has no {name}. It has {listed(folder)}. {remedy}")
    return path


def listed(folder: pathlib.Path, most: int = 5) -> str:
    """Return the first names in a folder as words for an error."""
    if not folder.is_dir():
        why = "it is a file; unpack an archive first" if folder.exists() else "it does not exist"
        return f"no files: {why}"
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(quote, names[:most])) + more if names else "no files"


def _index(folder):
    """Return the file of each weight by its name; {} for a folder without an index."""
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
