"""Ids of pairs in uncompressed files that are mapped into memory, so that they are unpacked once
(Vaswani et al. 2017, section 5.1).

A folder has the ids of one corpus: source.ids, target.ids, and where each sentence begins,
source.starts, target.starts, int64. It is written whole, once.
"""

import contextlib
import hashlib
import json
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from pipelines.batches.texts import TokenizedPairs
from pipelines.json_files import read_object
from pipelines.vocabularies.token_ids import TokenIds
from pipelines.whole_files import whole_folder, write_json

SIDES = ("source", "target")
COUNTS = "counts.json"
AGAIN = "Delete its folder: it is written again."


def mapped(folder: pathlib.Path, what: Any, parts: Iterable[TokenizedPairs]) -> TokenizedPairs:
    """The pairs of all parts, in order. They are read only if their files are not there yet."""
    name = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
    if not (folder / name).exists():
        with whole_folder(folder / name) as path:
            _write(path, parts)
    counts = read_object(folder / name / COUNTS, AGAIN)
    sides = (_side(folder / name, side, counts) for side in SIDES)
    return TokenizedPairs(*sides, too_long=counts["too_long"])


def _write(path, parts):
    ends = dict.fromkeys(SIDES, 0)
    too_long = pairs = 0
    dtype = None
    with contextlib.ExitStack() as opened:
        files = {
            name: opened.enter_context(open(path / name, "wb"))
            for side in SIDES
            for name in _names(side)
        }
        for side in SIDES:
            files[f"{side}.starts"].write(np.zeros(1, np.int64).tobytes())
        for part in parts:
            too_long += part.too_long
            pairs += len(part)
            for side, ids in zip(SIDES, (part.sources, part.targets), strict=True):
                dtype = ids.flat.dtype
                files[f"{side}.ids"].write(ids.flat.tobytes())
                files[f"{side}.starts"].write((ids.starts[1:] + ends[side]).tobytes())
                ends[side] += len(ids.flat)
    said = {"dtype": np.dtype(dtype).name, "pairs": pairs, "too_long": too_long}
    write_json(path / COUNTS, said | {f"{side}_tokens": ends[side] for side in SIDES})


def _side(folder, side, counts):
    sizes = (counts[f"{side}_tokens"], counts["pairs"] + 1)
    arrays = []
    for name, size, dtype in zip(_names(side), sizes, (counts["dtype"], "int64"), strict=True):
        path = folder / name
        if path.stat().st_size != size * np.dtype(dtype).itemsize:
            raise ValueError(f"{path} is damaged: it has another size than written. {AGAIN}")
        # Copied on write, which nobody does: TensorFlow shares only memory that could be written.
        arrays.append(np.memmap(path, dtype, "c") if size else np.zeros(0, dtype))
    return TokenIds(*arrays)


def _names(side):
    return f"{side}.ids", f"{side}.starts"
