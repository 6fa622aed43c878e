"""Tokenize a corpus once, into sharded and compressed records (Vaswani et al. 2017, section 5.1).

For corpora that are trained on often, or that do not fit into memory as text. An interrupted
preparation resumes: whole shards are not made again.
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
    """Complete a prepared corpus in a folder that all workers see, and return its manifest."""
    options = beam_options(preparation.beam_options)
    folder = pathlib.Path(os.path.expanduser(folder))
    recipe = _recipe(preparation, folder)
    _refuse_differences(folder, recipe)
    if not _is_finished(folder):
        _make(preparation, folder, options, recipe)
    return read_manifest(folder)


def _recipe(preparation, folder):
    """Return everything that determines the records of a folder, as JSON."""
    chosen = chosen_vocabulary(preparation.vocabulary, folder)
    learned = (
        f"{preparation.vocabulary_size} pieces{EACH[preparation.vocabularies]}, "
        f"{preparation.vocabulary_model}, of {preparation.vocabulary_sentences} sentences"
    )
    mixture = preparation.corpus.get("mixture")
    listed = members(mixture) if mixture else []
    # A mixture has languages of its own.
    ignored = SIDES if mixture else ()
    names = ("shards", "deduplicate", "max_length_ratio", "filter_untranslated", "filter_scripts")
    return {
        "format": FORMAT,
        **{name: value for name, value in preparation.corpus.items() if name not in ignored},
        **({"members": listed} if mixture else {}),
        **_digest_of_files([preparation.corpus, *listed]),
        "vocabulary": chosen.fingerprint if chosen else learned,
        **{name: getattr(preparation, name) for name in names},
    }


def _digest_of_files(settings):
    """Return {"text": digest} of some corpora's files; {} if no file is named or is left."""
    paths = [pathlib.Path(corpus.get(name) or "") for corpus in settings for name in FILES]
    for corpus in (corpus for corpus in settings if corpus.get("data_dir")):
        prefixes = corpus.get("prefixes") or ("train", "valid", "test")
        kind = corpora.CORPORA[corpus.get("name") or corpus["corpus"]]
        languages = dict.fromkeys(kind.languages(*map(corpus.get, SIDES)))
        folder = pathlib.Path(corpus["data_dir"])
        parts = itertools.product(prefixes, languages, ("", ".gz"))
        paths += [folder / f"{prefix}.{language}{end}" for prefix, language, end in parts]
        if corpus.get("dataset") == TRANSLATE_FOLDER:
            patterns = (f"{language}.*.txt" for language in languages)
            paths += sorted(path for pattern in patterns for path in folder.glob(pattern))
    files = [path for path in paths if path.is_file()]
    whole = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return {"text": whole.hexdigest()[:16]} if files else {}


def _begun(folder):
    """Return the recipe of the preparation that a folder holds; None if it holds none."""
    recipe = read_json(folder / PREPARATION)
    return recipe or (read_json(folder / MANIFEST) or {}).get("preparation")


def _refuse_differences(folder, recipe):
    before = _begun(folder) or recipe
    differences = [
        f"{name} was {before.get(name)}, now {value}"
        for name, value in recipe.items()
        if name in before and before[name] != value
    ]
    if differences:
        raise ValueError(
            f"{folder} holds another preparation: {'; '.join(differences)}. Name another "
            "--output_dir, or delete this one."
        )


def _is_finished(folder):
    try:
        corpora.load("records", data_dir=folder)
    except (ValueError, OSError):
        return False
    return True


def _make(preparation, folder, options, recipe):
    held_out = corpora.held_out(**preparation.settings)
    check_languages(held_out, preparation.corpus)
    scripts = (None, None)
    if preparation.filter_scripts:
        scripts = map(scripts_of, (held_out.source_language, held_out.target_language))
    by_length = (preparation.max_length_ratio, preparation.filter_untranslated)
    filters = Filters(*by_length, *scripts, held_out.tags)
    vocabulary = _vocabulary(preparation, folder, filters, held_out.tags)
    recipe = {**recipe, "fingerprint": vocabulary.fingerprint}
    _refuse_differences(folder, recipe)
    write_json(folder / PREPARATION, recipe)
    vocabularies.save(vocabulary, folder)
    for path in filter(pathlib.Path.is_file, folder.glob(".*.tmp")):  # A killed run left them.
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
    write_json(folder / MANIFEST, manifest_of(recipe, held_out, vocabulary, counts, dropped))


def _make_shards(shards, preparation, filters, options):
    """Make the missing shards. Return reason -> number of pairs left out."""
    missing = [shard for shard in range(preparation.shards) if not shards.counts(shard)]
    if whole := preparation.shards - len(missing):
        print(f"going on: {whole} of {preparation.shards} shards are whole", flush=True)
    # Beam's own runner reads one part after another.
    parts = preparation.parts or (os.cpu_count() if preparation.beam_options else 1)
    workers = (parts, preparation.shards_at_a_time, options)
    return make_shards(shards, missing, preparation.settings, filters, *workers)


def _vocabulary(preparation, folder, filters, tags):
    """Load the vocabulary of the options, else the folder's own, else learn a new one."""
    vocabulary = chosen_vocabulary(preparation.vocabulary, folder)
    if vocabulary is None and vocabularies.exist(folder):
        vocabulary = vocabularies.load(folder)
    if vocabulary is not None:
        return with_tags(vocabulary, tags, preparation.vocabulary or folder)
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
    options = (preparation.vocabularies, size, tags, preparation.vocabulary_model)
    return vocabularies.learn(*zip(*pairs, strict=True), *options)


def chosen_vocabulary(files: str | None, folder: pathlib.Path):
    """Load the vocabulary of one file, or of two joined by a comma, for source and target; without
    files, the one that was in the folder before the preparation. None: one is to be learned.
    """
    if files:
        vocabulary = vocabularies.of_files(files.split(","))
        is_new = vocabularies.exist(folder) and _begun(folder) is None
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
    """Return whether a preparation that began in a folder learned its vocabulary."""
    recipe = _begun(folder)
    return recipe is not None and recipe.get("vocabulary") != recipe.get("fingerprint")


def with_tags(vocabulary, tags: Sequence[str], name: str | pathlib.Path):
    """Return the vocabulary if each tag is one of its pieces, else raise a ValueError."""
    shared = set(vocabulary.source.pieces) & set(vocabulary.target.pieces)
    if missing := sorted(set(tags) - shared):
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
    recipe: Mapping[str, Any], held_out: Corpus, vocabulary, counts, dropped: Mapping[str, int]
) -> dict[str, Any]:
    """Return the manifest of a preparation from its recipe, the corpus without its training side,
    the vocabulary, the counts of each shard, and reason -> number of training pairs left out,
    without duplicates.
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
        "preparation": recipe,
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
    """Describe a manifest in three lines."""
    languages = f"{manifest['source_language']}-{manifest['target_language']}"
    shards = len(manifest["shards"])
    return (
        f"{manifest['preparation']['name']} {languages}: {manifest['pairs']:,} pairs in {shards} "
        f"shards, {manifest['valid_pairs']:,} to validate, {manifest['test_pairs']:,} to test\n"
        f"dropped: {Dropped(manifest['dropped']).describe()}\n"
        f"{manifest['source_tokens']:,} source and {manifest['target_tokens']:,} target tokens "
        f"of {manifest['vocabulary']['size']:,} pieces"
    )
