"""What a prepared corpus holds: `manifest.json`, written last, when all the rest is there."""

import collections
import itertools
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from pipelines import json_files
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.vocabulary import Vocabulary

AGAIN = "Run python -m keras_transformer.prepare again: it makes only what is missing."
FORMAT = 1
MANIFEST = "manifest.json"
# What a folder is prepared with, written first.
PREPARATION = "preparation.json"
ENTRIES = {"source_language", "target_language", "tags", "vocabulary", "pairs", "dropped", "shards"}


def damaged(path: str | os.PathLike, reason: str) -> str:
    """The error message for a file of a prepared corpus that cannot be read."""
    return f"{path} is damaged: {reason}. Delete it. {AGAIN}"


def read_json(path: pathlib.Path) -> dict[str, Any] | None:
    """Read the JSON object in a file of a prepared corpus; None if there is no such file."""
    try:
        return json_files.read_object(path, f"Delete it. {AGAIN}", json_files.MOST_BYTES_OF_LISTS)
    except FileNotFoundError:
        return None


def read(folder: str | os.PathLike) -> dict[str, Any]:
    """Read the manifest of a folder."""
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
    if missing := ENTRIES - manifest.keys():
        raise ValueError(damaged(path, f"it does not say {', '.join(sorted(missing))}"))
    return manifest


def make(
    preparation: Mapping[str, Any],
    held_out,
    vocabulary: Vocabulary | SeparateVocabularies,
    counts: Iterable[Mapping[str, Any]],
    dropped: Mapping[str, int],
) -> dict[str, Any]:
    """Make the manifest of a preparation.

    Args:
        preparation: its settings.
        held_out: the `corpora.Corpus`, without its training side.
        vocabulary: of both languages, or one for each.
        counts: the counts of each shard, in order.
        dropped: reason -> number of training pairs left out, without duplicates.
    """
    dropped = collections.Counter(held_out.dropped) + collections.Counter(dropped)
    dropped["duplicate"] += sum(shard["duplicates"] for shard in counts)
    totals = {
        name: sum(shard[name] for shard in counts)
        for name in ("pairs", "source_tokens", "target_tokens")
    }
    if not totals["pairs"]:
        raise ValueError(
            f"no pair is left: {enumeration(dropped)} were dropped. Loosen the filters."
        )
    return {
        "format": FORMAT,
        "preparation": preparation,
        "source_language": held_out.source_language,
        "target_language": held_out.target_language,
        "tags": list(held_out.tags),
        "vocabulary": {"fingerprint": vocabulary.fingerprint, "size": vocabulary.size},
        **totals,
        "source_lengths": _sum_columns(shard["source_lengths"] for shard in counts),
        "target_lengths": _sum_columns(shard["target_lengths"] for shard in counts),
        "valid_pairs": len(held_out.valid),
        "test_pairs": len(held_out.test),
        "dropped": {reason: count for reason, count in sorted(dropped.items()) if count},
        "shards": [{name: shard[name] for name in ("file", "pairs", "bytes")} for shard in counts],
    }


def _sum_columns(rows):
    return [sum(column) for column in itertools.zip_longest(*rows, fillvalue=0)]


def describe(manifest: Mapping[str, Any]) -> str:
    """A manifest in three lines of words."""
    languages = f"{manifest['source_language']}-{manifest['target_language']}"
    shards = len(manifest["shards"])
    pieces = manifest["vocabulary"]["size"]
    return (
        f"{manifest['preparation']['name']} {languages}: {manifest['pairs']:,} pairs in {shards} "
        "shards, "
        f"{manifest['valid_pairs']:,} to validate, {manifest['test_pairs']:,} to test\n"
        f"dropped: {enumeration(manifest['dropped'])}\n"
        f"{manifest['source_tokens']:,} source and {manifest['target_tokens']:,} target tokens "
        f"of {pieces:,} pieces"
    )


def enumeration(dropped: Mapping[str, int]) -> str:
    """Reasons and counts in words."""
    return (
        ", ".join(f"{count:,} {reason}" for reason, count in sorted(dropped.items()) if count)
        or "none"
    )
