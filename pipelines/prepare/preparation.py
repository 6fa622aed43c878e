"""Tokenize a corpus once, into sharded and compressed records (Vaswani et al. 2017, section 5.1).

For corpora that are trained on often, or that do not fit into memory as text. Preparing again goes
on where it was interrupted: a shard that is whole is not made again.
"""

import gzip
import os
import pathlib
from typing import Any

from pipelines import corpora, vocabularies
from pipelines.corpora import check_languages, manifest
from pipelines.corpora.manifest import PREPARATION, read_json
from pipelines.corpora.parallel_text import Corpus
from pipelines.corpora.records import text_paths
from pipelines.dropped import Dropped
from pipelines.prepare import beam
from pipelines.prepare.filtering import Filters, scripts_of
from pipelines.prepare.given_vocabulary import given, with_tags
from pipelines.prepare.options import EACH, Preparation
from pipelines.prepare.sharding import Shards, kept, sample
from pipelines.whole_files import write_json, write_whole


def prepare(preparation: Preparation, folder: str | os.PathLike) -> dict[str, Any]:
    """Make what is missing of a prepared corpus.

    Args:
        preparation: what to prepare, and how.
        folder: where to; all workers of Beam must see it.

    Returns:
        The manifest.
    """
    options = beam.beam_options(preparation.beam_options)
    folder = pathlib.Path(folder).expanduser()
    _refuse_differences(folder / PREPARATION, preparation.decides(folder))
    if not _is_finished(folder):
        _make(preparation, folder, options)
    return manifest.read(folder)


def _refuse_differences(path, decides):
    before = read_json(path) or decides
    differences = [
        f"{name} was {before.get(name)}, now {value}"
        for name, value in decides.items()
        if name in before and before[name] != value
    ]
    if differences:
        raise ValueError(
            f"{path.parent} holds another preparation: {'; '.join(differences)}. Name another "
            "--output_dir, or delete this one."
        )


def _is_finished(folder):
    try:
        corpora.load("records", data_dir=folder)
    except (ValueError, OSError):
        return False
    return True


def _make(preparation, folder, options):
    held_out = corpora.held_out(**preparation.settings)
    check_languages(held_out, preparation.corpus)
    filters = _filters(preparation, held_out)
    vocabulary = _vocabulary(preparation, folder, filters, held_out.tags)
    decides = {**preparation.decides(folder), "fingerprint": vocabulary.fingerprint}
    _refuse_differences(folder / PREPARATION, decides)
    write_json(folder / PREPARATION, decides)
    vocabularies.save(vocabulary, folder)
    for path in folder.glob(".*.tmp"):  # A killed run left them.
        path.unlink()
    _write_held_out(folder, held_out)
    shards = Shards(folder, preparation.shards, vocabulary, preparation.deduplicate)
    dropped = _make_shards(shards, preparation, filters, options)
    counts = [shards.counts(shard) for shard in range(preparation.shards)]
    if None in counts:
        raise OSError(
            f"{shards.path(counts.index(None))} is not there. Name an --output_dir that all "
            "workers of Beam see."
        )
    summary = manifest.make(decides, held_out, vocabulary, counts, dropped)
    write_json(folder / manifest.MANIFEST, summary)


def _make_shards(shards, preparation, filters, options):
    """Make the shards that are missing. Returns reason -> number of pairs left out."""
    wanted = [shard for shard in range(preparation.shards) if not shards.counts(shard)]
    whole = preparation.shards - len(wanted)
    if whole:
        print(f"going on: {whole} of {preparation.shards} shards are whole", flush=True)
    parts = preparation.parts or os.cpu_count()
    return beam.make_shards(
        shards, wanted, preparation.settings, filters, parts, preparation.shards_at_a_time, options
    )


def _filters(preparation, held_out):
    languages = (held_out.source_language, held_out.target_language)
    scripts = [scripts_of(one) if preparation.filter_scripts else None for one in languages]
    return Filters(preparation.max_length_ratio, preparation.filter_untranslated, *scripts)


def _vocabulary(preparation, folder, filters, tags):
    """The vocabulary that is asked for, else the folder's own, else a new one."""
    found = given(preparation.vocabulary, folder)
    if found is None and vocabularies.exist(folder):
        found = vocabularies.load(folder)
    if found is not None:
        return with_tags(found, tags, preparation.vocabulary or folder)
    dropped = Dropped()
    stream = corpora.stream(**preparation.settings, dropped=dropped)
    pairs = sample(kept(stream, filters, dropped), preparation.vocabulary_sentences // 2)
    if not pairs:
        raise ValueError(
            f"no pair is left to learn a vocabulary from: {manifest.enumeration(dropped)} were "
            "dropped."
        )
    size = preparation.vocabulary_size
    print(
        f"learning a vocabulary of at most {size:,} pieces{EACH[preparation.vocabularies]} from "
        f"{2 * len(pairs):,} sentences",
        flush=True,
    )
    sides = zip(*pairs, strict=True)
    kind = preparation.vocabularies
    return vocabularies.learn(*sides, kind, size, tags, preparation.vocabulary_model)


def _write_held_out(folder, held_out: Corpus):
    for split in ("valid", "test"):
        text = getattr(held_out, split)
        for path, lines in zip(
            text_paths(folder, split), (text.sources, text.targets), strict=True
        ):
            _write_lines(path, lines)


def _write_lines(path, lines):
    text = "".join(line.replace("\n", " ") + "\n" for line in lines).encode("utf-8")
    write_whole(path, lambda temporary: temporary.write_bytes(gzip.compress(text, mtime=0)))
