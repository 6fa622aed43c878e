"""Token ids on disk, for corpora that are tokenized once and read many times (Vaswani et al. 2017,
section 5.1).

    manifest.json                      languages, vocabulary, counts, shards; written last
    vocabulary.model                   or vocabulary.source.model and vocabulary.target.model
    train-00000-of-00016.tfrecord.gz   blocks of pairs
    train-00000-of-00016.json          the counts of that shard; written when the shard is whole
    valid.source.gz valid.target.gz    the text of the other two splits, one sentence a line
    test.source.gz test.target.gz

A record is a `tf.train.Example` with a block of up to 1,024 pairs in four byte strings, so that
reading is copying. `source_ids` and `target_ids` are little-endian uint16, or int32 for a
vocabulary above 65,536; each sentence ends with EOS. `source_lengths` and `target_lengths`, the
numbers of tokens of each sentence, are little-endian int32.

Ids that are mapped into memory are written once, uncompressed, to a folder: source.ids, target.ids,
and the offsets at which the sentences begin, source.starts and target.starts, int64.
"""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import tensorflow as tf
from google.protobuf import message

from pipelines import json_files, vocabularies
from pipelines.batches.texts import TokenizedPairs
from pipelines.vocabularies.token_ids import TokenIds, smallest_dtype
from pipelines.whole_files import whole_folder, write_json, write_whole

SIDES = ("source", "target")
BLOCK = 1024
LENGTH = np.dtype("<i4")
AGAIN = "Run python -m keras_transformer.prepare again: it makes only what is missing."
COUNTS = "counts.json"
MAPPED_AGAIN = "Delete its folder: it is written again."
FORMAT = 1
MANIFEST = "manifest.json"
# The recipe of a preparation, written first.
PREPARATION = "preparation.json"
VOCABULARY = msgspec.defstruct("Vocabulary", [("fingerprint", str), ("size", int)])
SHARD = msgspec.defstruct("Shard", [("file", str), ("pairs", int), ("bytes", int)])
ENTRIES = {"source_language": str, "target_language": str, "tags": list[str], "pairs": int}
ENTRIES |= {"vocabulary": VOCABULARY, "dropped": dict[str, int], "shards": list[SHARD]}
ENTRIES |= {"preparation": msgspec.defstruct("Preparation", [("name", str)])}
ENTRIES |= dict.fromkeys(("source_tokens", "target_tokens", "valid_pairs", "test_pairs"), int)


class Records:
    """The training side of a prepared corpus, in a folder that `keras_transformer.prepare` filled.
    Missing and damaged files are errors.

    Args:
        map_dir: folder of uncompressed ids to map into memory; None: unpack the records instead.
    """

    def __init__(self, folder: str | os.PathLike, map_dir: str | os.PathLike | None = None):
        self.map_dir = map_dir
        self.folder = pathlib.Path(os.path.expanduser(folder))
        self.manifest = read_manifest(self.folder)
        for shard in self.manifest["shards"]:
            path = self.folder / shard["file"]
            if not path.exists():
                raise FileNotFoundError(f"{path} is missing. {AGAIN}")
            if (size := path.stat().st_size) != shard["bytes"]:
                raise ValueError(
                    f"{path} must have {shard['bytes']:,} bytes. Received: {size:,}. {AGAIN}"
                )
        self.vocabulary = _vocabulary(self.folder, self.manifest["vocabulary"]["fingerprint"])

    def __len__(self) -> int:
        return self.manifest["pairs"]

    def pairs(self, max_length: int | None = None) -> TokenizedPairs:
        """Read the ids of all pairs, or map them if there is a `map_dir`, shard by shard in the
        order of the files. Drop and count pairs with a side above `max_length` tokens, EOS
        included; None keeps all.
        """
        shards = self.manifest["shards"]
        if self.map_dir:
            names = ("preparation", "vocabulary", "shards")
            recipe = [*map(self.manifest.get, names), max_length]
            parts = (self._read(shard, max_length) for shard in shards)
            return _mapped(pathlib.Path(os.path.expanduser(self.map_dir)), recipe, parts)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            parts = list(pool.map(lambda shard: self._read(shard, max_length), shards))
        sides = (
            TokenIds.concatenate(getattr(part, side) for part in parts)
            for side in ("sources", "targets")
        )
        return TokenizedPairs(*sides, too_long=sum(part.too_long for part in parts))

    def _read(self, shard, max_length):
        path = self.folder / shard["file"]
        pairs = read_shard(path, smallest_dtype(self.vocabulary.size), shard["pairs"])
        return pairs if max_length is None else pairs.up_to(max_length)


def _vocabulary(folder, fingerprint):
    """Load the vocabulary of the ids in a folder."""
    try:
        vocabulary = vocabularies.load(folder)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error.filename} is missing. {AGAIN}") from error
    if vocabulary.fingerprint != fingerprint:
        names = " and ".join(str(path) for path in vocabularies.paths(vocabulary.kind, folder))
        raise ValueError(
            f"{names} must be the vocabulary of the token ids beside it, fingerprint "
            f"{fingerprint}. Received: {vocabulary.fingerprint}. Put the right one back, or delete "
            "it, and run keras_transformer.prepare again."
        )
    return vocabulary


def read_shard(path: str | os.PathLike, dtype: np.dtype, number: int) -> TokenizedPairs:
    """Read a shard, which must have `number` pairs."""
    try:
        records = tf.data.TFRecordDataset(str(path), compression_type="GZIP").prefetch(4)
        pairs = deserialize(records.as_numpy_iterator(), dtype)
    except (tf.errors.OpError, ValueError) as error:
        raise ValueError(damaged(path, str(error).splitlines()[0])) from error
    if len(pairs) != number:  # TensorFlow reads a truncated gzip file without an error.
        raise ValueError(
            damaged(path, f"it should hold {number:,} pairs, and {len(pairs):,} can be read")
        )
    return pairs


def write_shard(path: str | os.PathLike, pairs: TokenizedPairs) -> None:
    """Write the pairs of a shard atomically, in blocks, with ids of their dtype."""

    def write(temporary):
        packed = tf.io.TFRecordOptions(compression_type="GZIP")
        with tf.io.TFRecordWriter(str(temporary), packed) as file:
            for start in range(0, len(pairs), BLOCK):
                sides = (pairs.sources, pairs.targets)
                file.write(serialize(*(_rows(side, start, start + BLOCK) for side in sides)))

    write_whole(path, write)


def _rows(ids, start, end):
    starts = ids.starts[start : end + 1]
    return TokenIds(ids.flat[starts[0] : starts[-1]], starts - starts[0])


def serialize(sources: TokenIds, targets: TokenIds) -> bytes:
    """Return a block of pairs as the bytes of a record."""

    def feature(array, dtype):
        return tf.train.Feature(
            bytes_list=tf.train.BytesList(value=[array.astype(dtype, copy=False).tobytes()])
        )

    features = {}
    for side, ids in (("source", sources), ("target", targets)):
        features[f"{side}_ids"] = feature(ids.flat, ids.flat.dtype.newbyteorder("<"))
        features[f"{side}_lengths"] = feature(ids.lengths, LENGTH)
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(
        deterministic=True
    )


def deserialize(records: Iterable[bytes], dtype: np.dtype) -> TokenizedPairs:
    """Return the pairs of some records that `serialize` made."""
    try:
        blocks = [tf.train.Example.FromString(record).features.feature for record in records]
        return TokenizedPairs(*(_side(blocks, name, np.dtype(dtype)) for name in SIDES))
    except (message.DecodeError, IndexError) as error:
        raise ValueError("a record is no block of pairs") from error


def _side(blocks, name, dtype):
    def arrays(kind, dtype):
        buffers = [block[f"{name}_{kind}"].bytes_list.value[0] for block in blocks]
        return np.frombuffer(b"".join(buffers), dtype.newbyteorder("<")).astype(dtype, copy=False)

    return TokenIds.of_lengths(arrays("ids", dtype), arrays("lengths", LENGTH))


def damaged(path: str | os.PathLike, reason: str) -> str:
    """Return the error message for a damaged file of a prepared corpus."""
    return f"{path} is damaged: {reason}. Delete it. {AGAIN}"


def read_json(path: pathlib.Path) -> dict[str, Any] | None:
    """Read the JSON object in a file of a prepared corpus; None if there is no such file."""
    try:
        return json_files.read_object(path, f"Delete it. {AGAIN}", json_files.MOST_BYTES_OF_LISTS)
    except FileNotFoundError:
        return None


def read_manifest(folder: str | os.PathLike) -> dict[str, Any]:
    """Read the manifest of a prepared corpus' folder."""
    path = pathlib.Path(folder) / MANIFEST
    manifest = read_json(path)
    if manifest is None:
        raise FileNotFoundError(
            f"{folder} holds no prepared corpus, or one that is not finished: it has no "
            f"{MANIFEST}. {AGAIN}"
        )
    if manifest.get("format") != FORMAT:
        raise ValueError(
            f"{path} must be of format {FORMAT}. Received: {manifest.get('format')}. Prepare the "
            "corpus again in another folder."
        )
    if missing := ENTRIES.keys() - manifest.keys():
        raise ValueError(damaged(path, f"it lacks {', '.join(sorted(missing))}"))
    try:
        msgspec.convert(manifest, msgspec.defstruct("Manifest", ENTRIES.items()))
    except msgspec.ValidationError as error:
        raise ValueError(damaged(path, str(error))) from error
    return manifest


def _mapped(folder, recipe, parts):
    """Map the pairs of all parts, in order; read the parts only to write the files of a recipe."""
    name = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]
    if not (folder / name).exists():
        with whole_folder(folder / name) as path:
            _write_mapped(path, parts)
    counts = json_files.read_object(folder / name / COUNTS, MAPPED_AGAIN)
    sides = (_mapped_side(folder / name, side, counts) for side in SIDES)
    return TokenizedPairs(*sides, too_long=counts["too_long"])


def _write_mapped(path, parts):
    ends = dict.fromkeys(SIDES, 0)
    too_long = pairs = 0
    dtype = None
    with contextlib.ExitStack() as stack:
        names = [name for side in SIDES for name in _names(side)]
        files = {name: stack.enter_context(open(path / name, "wb")) for name in names}
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
    counts = {"dtype": np.dtype(dtype).name, "pairs": pairs, "too_long": too_long}
    write_json(path / COUNTS, counts | {f"{side}_tokens": ends[side] for side in SIDES})


def _mapped_side(folder, side, counts):
    sizes = (counts[f"{side}_tokens"], counts["pairs"] + 1)
    arrays = []
    for name, size, dtype in zip(_names(side), sizes, (counts["dtype"], "int64"), strict=True):
        path = folder / name
        if path.stat().st_size != size * np.dtype(dtype).itemsize:
            raise ValueError(f"{path} is damaged: it has another size than written. {MAPPED_AGAIN}")
        # Mode "c" (copy on write, but nobody writes): TensorFlow shares only writable memory.
        arrays.append(np.memmap(path, dtype, "c") if size else np.zeros(0, dtype))
    return TokenIds(*arrays)


def _names(side):
    return f"{side}.ids", f"{side}.starts"
