"""Tokenize a corpus once, into sharded and compressed records (Vaswani et al. 2017, section 5.1).

For corpora that are trained on often, or that do not fit into memory as text. Preparing again goes
on where it was interrupted: a shard that is whole is not made again.
"""

import collections
import hashlib
import itertools
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines import corpora, vocabularies
from pipelines.corpora import check_languages
from pipelines.corpora.mixture import members
from pipelines.corpora.options import FILES
from pipelines.corpora.parallel_text import Corpus
from pipelines.corpora.record_files import FORMAT, MANIFEST, PREPARATION, read_json, read_manifest
from pipelines.corpora.records import text_paths
from pipelines.corpora.tfds import TRANSLATE_FOLDER
from pipelines.dropped import Dropped
from pipelines.prepare.beam_runner import beam_options
from pipelines.prepare.filtering import Filters, sample, scripts_of, usable_pairs
from pipelines.prepare.options import EACH, Preparation
from pipelines.prepare.sharding import Shards, make_shards
from pipelines.vocabularies.other_order import require_trainable
from pipelines.whole_files import write_json, write_text

SIDES = ("source_language", "target_language")


def prepare(preparation: Preparation, folder: str | os.PathLike) -> dict[str, Any]:
    """Make what is missing of a prepared corpus in a folder that all workers see; its manifest."""
    options = beam_options(preparation.beam_options)
    folder = pathlib.Path(os.path.expanduser(folder))
    decides = _decides(preparation, folder)
    _refuse_differences(folder / PREPARATION, decides)
    if not _is_finished(folder):
        _make(preparation, folder, options, decides)
    return read_manifest(folder)


def _decides(preparation, folder):
    """What decides what the records of a folder hold, as JSON."""
    taken = chosen_vocabulary(preparation.vocabulary, folder)
    learned = (
        f"{preparation.vocabulary_size} pieces{EACH[preparation.vocabularies]}, "
        f"{preparation.vocabulary_model}, of {preparation.vocabulary_sentences} sentences"
    )
    mixture = preparation.corpus.get("mixture")
    listed = members(mixture) if mixture else []
    # A mixture has languages of its own.
    unasked = SIDES if mixture else ()
    names = ("shards", "deduplicate", "max_length_ratio", "filter_untranslated", "filter_scripts")
    return {
        "format": FORMAT,
        **{name: value for name, value in preparation.corpus.items() if name not in unasked},
        **({"members": listed} if mixture else {}),
        **_text([preparation.corpus, *listed]),
        "vocabulary": taken.fingerprint if taken else learned,
        **{name: getattr(preparation, name) for name in names},
    }


def _text(settings):
    """A digest of the files of some corpora; {} of what is downloaded or made, or was deleted."""
    paths = [pathlib.Path(one.get(name) or "") for one in settings for name in FILES]
    for one in (one for one in settings if one.get("data_dir")):
        prefixes = one.get("prefixes") or ("train", "valid", "test")
        kind = corpora.CORPORA[one.get("name") or one["corpus"]]
        languages = dict.fromkeys(kind.languages(*map(one.get, SIDES)))
        folder = pathlib.Path(one["data_dir"])
        parts = itertools.product(prefixes, languages, ("", ".gz"))
        paths += [folder / f"{prefix}.{language}{end}" for prefix, language, end in parts]
        if one.get("dataset") == TRANSLATE_FOLDER:
            paths += sorted(path for one in languages for path in folder.glob(f"{one}.*.txt"))
    whole = hashlib.sha256()
    for path in (found := [path for path in paths if path.is_file()]):
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return {"text": whole.hexdigest()[:16]} if found else {}


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


def _make(preparation, folder, options, decides):
    held_out = corpora.held_out(**preparation.settings)
    check_languages(held_out, preparation.corpus)
    languages = (held_out.source_language, held_out.target_language)
    scripts = [scripts_of(one) if preparation.filter_scripts else None for one in languages]
    by_length = (preparation.max_length_ratio, preparation.filter_untranslated)
    filters = Filters(*by_length, *scripts, held_out.tags)
    vocabulary = _vocabulary(preparation, folder, filters, held_out.tags)
    decides = {**decides, "fingerprint": vocabulary.fingerprint}
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
    write_json(folder / MANIFEST, manifest_of(decides, held_out, vocabulary, counts, dropped))


def _make_shards(shards, preparation, filters, options):
    """Make the shards that are missing. Returns reason -> number of pairs left out."""
    wanted = [shard for shard in range(preparation.shards) if not shards.counts(shard)]
    if whole := preparation.shards - len(wanted):
        print(f"going on: {whole} of {preparation.shards} shards are whole", flush=True)
    how = (preparation.parts or os.cpu_count(), preparation.shards_at_a_time, options)
    return make_shards(shards, wanted, preparation.settings, filters, *how)


def _vocabulary(preparation, folder, filters, tags):
    """The vocabulary that is asked for, else the folder's own, else a new one."""
    found = chosen_vocabulary(preparation.vocabulary, folder)
    if found is None and vocabularies.exist(folder):
        found = vocabularies.load(folder)
    if found is not None:
        return with_tags(found, tags, preparation.vocabulary or folder)
    dropped = Dropped()
    stream = corpora.stream(**preparation.settings, dropped=dropped)
    pairs = sample(usable_pairs(stream, filters, dropped), preparation.vocabulary_sentences // 2)
    if not pairs:
        raise ValueError(
            f"no pair is left to learn a vocabulary from: {dropped.describe()} were dropped."
        )
    size = preparation.vocabulary_size
    print(
        f"learning a vocabulary of at most {size:,} pieces{EACH[preparation.vocabularies]} from "
        f"{2 * len(pairs):,} sentences",
        flush=True,
    )
    how = (preparation.vocabularies, size, tags, preparation.vocabulary_model)
    return vocabularies.learn(*zip(*pairs, strict=True), *how)


def chosen_vocabulary(files: str | None, folder: pathlib.Path):
    """The vocabulary of files, one, or two joined by a comma, of source and target; if none are
    named, the one that lay in a folder before a corpus was prepared there. None: one is learned.
    """
    if files:
        vocabulary = vocabularies.of_files(files.split(","))
        is_new = vocabularies.exist(folder) and not (folder / PREPARATION).exists()
        if is_new and vocabularies.load(folder).fingerprint != vocabulary.fingerprint:
            raise ValueError(
                f"{folder} has another vocabulary, perhaps that of a run, which `vocabulary` would "
                "overwrite. Name another --output_dir."
            )
    elif vocabularies.exist(folder) and not _has_learned(folder):
        vocabulary = vocabularies.load(folder)
    else:
        return None
    remedy = "Name a vocabulary.model of a translator, or another --output_dir."
    require_trainable(vocabulary, files or folder, remedy)
    return vocabulary


def _has_learned(folder):
    """Whether a preparation that began in a folder learns its vocabulary."""
    begun = read_json(folder / PREPARATION)
    return begun is not None and begun.get("vocabulary") != begun.get("fingerprint")


def with_tags(vocabulary, tags: Sequence[str], name: str | pathlib.Path):
    """Give a vocabulary back, in which each tag must be one piece."""
    known = set(vocabulary.source.pieces) & set(vocabulary.target.pieces)
    if missing := sorted(set(tags) - known):
        raise ValueError(
            f"`vocabulary` must have each tag of the corpus as a piece. Received: {name} without "
            f"{', '.join(missing)}. Name a vocabulary that was learned with them, or let "
            "prepare learn one: without --vocabulary, and without vocabulary.model in --output_dir."
        )
    return vocabulary


def _write_held_out(folder, held_out: Corpus):
    for split in ("valid", "test"):
        text = getattr(held_out, split)
        sides = (text.sources, text.targets)
        for path, lines in zip(text_paths(folder, split), sides, strict=True):
            write_text(path, "".join(line.replace("\n", " ") + "\n" for line in lines))


def manifest_of(
    decides: Mapping[str, Any], held_out: Corpus, vocabulary, counts, dropped: Mapping[str, int]
) -> dict[str, Any]:
    """The manifest of a preparation: what decides it, its corpus without the training side, the
    vocabulary, the counts of each shard, and reason -> number of training pairs left out, without
    duplicates.
    """
    dropped = collections.Counter(held_out.dropped) + collections.Counter(dropped)
    dropped["duplicate"] += sum(shard["duplicates"] for shard in counts)
    totals = {
        name: sum(shard[name] for shard in counts)
        for name in ("pairs", "source_tokens", "target_tokens")
    }
    if not totals["pairs"]:
        reasons = Dropped(dict(sorted(dropped.items()))).describe()
        raise ValueError(f"no pair is left: {reasons} were dropped. Loosen the filters.")
    return {
        "format": FORMAT,
        "preparation": decides,
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
    return (
        f"{manifest['preparation']['name']} {languages}: {manifest['pairs']:,} pairs in {shards} "
        f"shards, {manifest['valid_pairs']:,} to validate, {manifest['test_pairs']:,} to test\n"
        f"dropped: {Dropped(manifest['dropped']).describe()}\n"
        f"{manifest['source_tokens']:,} source and {manifest['target_tokens']:,} target tokens "
        f"of {manifest['vocabulary']['size']:,} pieces"
    )
