"""Tokenize a corpus once, into sharded and compressed records: `python -m pipelines.prepare --output_dir=prepared/mine --corpus=text_files ...`.

For corpora that are trained on often, or that memory does not hold as text (Vaswani et al. 2017, section 5.1). The same command again goes
on where it was interrupted: a shard that is whole is not made again.
"""

import collections
import gzip
import itertools
import logging
import os
import pathlib
import time

from keras_transformer import flags
from pipelines import corpora, distributed, records
from pipelines.corpora.records import text_paths
from pipelines.filtering import Filters, scripts_of
from pipelines.sharding import Shards, kept, sample
from pipelines.vocabulary import Vocabulary, learn

GROUPS = ("corpus", "vocabulary", "prepare")
PREPARATION = "preparation.json"


def main(FLAGS):
    started = time.monotonic()
    distributed.require_beam()
    # What goes wrong there is raised, and told in one line.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    if not FLAGS.output_dir:
        raise ValueError("--output_dir is missing: the folder of the prepared corpus, such as prepared/mine.")
    folder = pathlib.Path(FLAGS.output_dir).expanduser()
    preparation = _preparation(FLAGS)
    _refuse_differences(folder / PREPARATION, preparation)
    if not _is_finished(folder):
        _prepare(FLAGS, folder, preparation)
    _report(folder, time.monotonic() - started)


def _preparation(FLAGS):
    """What decides what the records hold."""
    if FLAGS.vocabulary:
        vocabulary = Vocabulary.load(FLAGS.vocabulary).fingerprint
    else:
        vocabulary = f"{FLAGS.vocabulary_size} pieces of {FLAGS.vocabulary_sentences} sentences"
    names = ("shards", "deduplicate", "max_length_ratio", "filter_untranslated", "filter_scripts")
    settings = {name: getattr(FLAGS, name) for name in names}
    return {"format": records.FORMAT, **flags.corpus_settings(FLAGS), "vocabulary": vocabulary, **settings}


def _refuse_differences(path, preparation):
    before = records.read_json(path) or preparation
    differences = [f"{name} was {before.get(name)}, now {value}" for name, value in preparation.items() if before.get(name) != value]
    if differences:
        raise ValueError(
            f"{path.parent} holds another preparation: {'; '.join(differences)}. Name another --output_dir, or delete this one."
        )


def _is_finished(folder):
    try:
        corpora.records.load(folder)
    except (ValueError, OSError):
        return False
    return True


def _prepare(FLAGS, folder, preparation):
    settings = {**flags.corpus_settings(FLAGS), "cache_dir": FLAGS.cache_dir}
    held_out = corpora.held_out(**settings)
    filters = _filters(FLAGS, held_out)
    vocabulary = _vocabulary(FLAGS, folder, settings, filters)
    preparation = {**preparation, "fingerprint": vocabulary.fingerprint}
    _refuse_differences(folder / PREPARATION, preparation)
    folder.mkdir(parents=True, exist_ok=True)
    records.write_json(folder / PREPARATION, preparation)
    vocabulary.save(folder / records.VOCABULARY)
    for path in folder.glob(".*.tmp"):  # Left by a killed run.
        path.unlink()
    for split in ("valid", "test"):
        text = getattr(held_out, split)
        for path, lines in zip(text_paths(folder, split), (text.sources, text.targets), strict=True):
            _write_lines(path, lines)
    shards = Shards(folder, FLAGS.shards, vocabulary, FLAGS.deduplicate)
    wanted = [shard for shard in range(FLAGS.shards) if not shards.counts(shard)]
    if len(wanted) < FLAGS.shards:
        print(f"going on: {FLAGS.shards - len(wanted)} of {FLAGS.shards} shards are whole", flush=True)
    dropped = distributed.make_shards(shards, wanted, settings, filters, FLAGS.parts or os.cpu_count(), FLAGS.beam_options)
    _write_manifest(folder, preparation, held_out, shards, dropped)


def _filters(FLAGS, corpus):
    scripts = [scripts_of(language) if FLAGS.filter_scripts else None for language in (corpus.source_language, corpus.target_language)]
    return Filters(FLAGS.max_length_ratio, FLAGS.filter_untranslated, *scripts)


def _vocabulary(FLAGS, folder, settings, filters):
    """The vocabulary that is asked for, else the folder's own, else a new one."""
    for path in (FLAGS.vocabulary, folder / records.VOCABULARY):
        if path and os.path.exists(path):
            return Vocabulary.load(path)
    dropped = collections.Counter()
    pairs = sample(kept(corpora.stream(**settings, dropped=dropped), filters, dropped), FLAGS.vocabulary_sentences // 2)
    if not pairs:
        raise ValueError(f"no pair is left to learn a vocabulary from: {_list(dropped)} were dropped.")
    print(f"learning a vocabulary of {FLAGS.vocabulary_size:,} pieces from {2 * len(pairs):,} sentences", flush=True)
    return learn(itertools.chain.from_iterable(pairs), FLAGS.vocabulary_size)


def _write_lines(path, lines):
    text = "".join(" ".join(line.splitlines()) + "\n" for line in lines).encode("utf-8")
    records.write_whole(path, lambda temporary: temporary.write_bytes(gzip.compress(text, mtime=0)))


def _write_manifest(folder, preparation, held_out, shards, dropped):
    counts = [shards.counts(shard) for shard in range(shards.number)]
    if None in counts:
        raise OSError(f"{shards.path(counts.index(None))} is not there. Name an --output_dir that all workers of Beam see.")
    dropped = collections.Counter(held_out.dropped) + collections.Counter(dropped)
    dropped["duplicate"] += sum(count["duplicates"] for count in counts)
    total = {name: sum(count[name] for count in counts) for name in ("pairs", "source_tokens", "target_tokens")}
    if not total["pairs"]:
        raise ValueError(f"no pair is left: {_list(dropped)} were dropped.")
    lengths = {
        name: [sum(column) for column in itertools.zip_longest(*(count[name] for count in counts), fillvalue=0)]
        for name in ("source_lengths", "target_lengths")
    }
    manifest = {
        "format": records.FORMAT,
        "preparation": preparation,
        "source_language": held_out.source_language,
        "target_language": held_out.target_language,
        "vocabulary": {"fingerprint": shards.fingerprint, "size": shards.vocabulary_size},
        **total,
        "valid_pairs": len(held_out.valid),
        "test_pairs": len(held_out.test),
        **lengths,
        "dropped": {reason: count for reason, count in dropped.items() if count},
        "shards": [{name: count[name] for name in ("file", "pairs", "bytes")} for count in counts],
    }
    records.write_json(folder / records.MANIFEST, manifest)


def _report(folder, seconds):
    manifest = records.read_manifest(folder)
    languages = f"{manifest['source_language']}-{manifest['target_language']}"
    print(f"{manifest['preparation']['name']} {languages}: {manifest['pairs']:,} pairs in {len(manifest['shards'])} shards, ", end="")
    print(f"{manifest['valid_pairs']:,} to validate, {manifest['test_pairs']:,} to test")
    print(f"dropped: {_list(manifest['dropped'])}")
    print(
        f"{manifest['source_tokens']:,} source and {manifest['target_tokens']:,} target tokens of {manifest['vocabulary']['size']:,} pieces"
    )
    print(f"{folder} is ready after {seconds:.0f} s. Train on it:")
    print(f"  python -m keras_transformer.train --corpus=records --data_dir={folder}")


def _list(dropped):
    return ", ".join(f"{count:,} {reason}" for reason, count in dropped.items() if count) or "none"


if __name__ == "__main__":
    flags.run(main, GROUPS)
