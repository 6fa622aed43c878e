"""Tokenize a corpus once, into sharded and compressed records: `python -m pipelines.preparation
--corpus=reverse --output_dir=prepared/toy`.

For corpora that are trained on often, or that memory does not hold as text (Vaswani et al. 2017,
section 5.1). The same command again goes on where it was interrupted: a shard that is whole is not
made again.
"""

import collections
import gzip
import itertools
import logging
import os
import pathlib
import signal
import sys
import time

from keras_transformer import flags
from pipelines import beam as distributed
from pipelines import corpora, manifest
from pipelines.corpora.records import text_paths
from pipelines.filtering import Filters, scripts_of
from pipelines.sharding import Shards, kept, sample
from pipelines.vocabulary import Vocabulary, learn
from pipelines.whole_files import read_json, write_json, write_whole

GROUPS = ("corpus", "seed", "vocabulary", "prepare")
PREPARATION = "preparation.json"


def main(FLAGS):
    started = time.monotonic()
    options = distributed.beam_options(FLAGS.beam_options)
    # What goes wrong there is raised, and told in one line.
    logging.getLogger("apache_beam.runners").setLevel(logging.CRITICAL)
    if not FLAGS.output_dir:
        raise ValueError(
            "--output_dir is missing: the folder of the prepared corpus, such as prepared/mine."
        )
    folder = pathlib.Path(FLAGS.output_dir).expanduser()
    preparation = _preparation(FLAGS)
    _refuse_differences(folder / PREPARATION, preparation)
    if not _is_finished(folder):
        _prepare(FLAGS, folder, preparation, options)
    print(manifest.describe(manifest.read(folder)))
    print(f"{folder} is ready after {time.monotonic() - started:.0f} s. Train on it:")
    print(f"  python -m keras_transformer.train --corpus=records --data_dir={folder}")


def _preparation(FLAGS):
    """What decides what the records hold."""
    if FLAGS.vocabulary:
        vocabulary = Vocabulary.load(FLAGS.vocabulary).fingerprint
    else:
        vocabulary = f"{FLAGS.vocabulary_size} pieces of {FLAGS.vocabulary_sentences} sentences"
    names = ("shards", "deduplicate", "max_length_ratio", "filter_untranslated", "filter_scripts")
    settings = {name: getattr(FLAGS, name) for name in names}
    return {
        "format": manifest.FORMAT,
        **flags.corpus_settings(FLAGS),
        "vocabulary": vocabulary,
        **settings,
    }


def _refuse_differences(path, preparation):
    before = read_json(path) or preparation
    differences = [
        f"{name} was {before.get(name)}, now {value}"
        for name, value in preparation.items()
        if before.get(name) != value
    ]
    if differences:
        raise ValueError(
            f"{path.parent} holds another preparation: {'; '.join(differences)}. Name another "
            "--output_dir, or delete this one."
        )


def _is_finished(folder):
    try:
        corpora.records.load(folder)
    except (ValueError, OSError):
        return False
    return True


def _prepare(FLAGS, folder, preparation, options):
    settings = {**flags.corpus_settings(FLAGS), "cache_dir": FLAGS.cache_dir}
    held_out = corpora.held_out(**settings)
    filters = _filters(FLAGS, held_out)
    vocabulary = _vocabulary(FLAGS, folder, settings, filters, held_out.tags)
    preparation = {**preparation, "fingerprint": vocabulary.fingerprint}
    _refuse_differences(folder / PREPARATION, preparation)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / PREPARATION, preparation)
    vocabulary.save(folder / manifest.VOCABULARY)
    for path in folder.glob(".*.tmp"):  # Left by a killed run.
        path.unlink()
    for split in ("valid", "test"):
        text = getattr(held_out, split)
        for path, lines in zip(
            text_paths(folder, split), (text.sources, text.targets), strict=True
        ):
            _write_lines(path, lines)
    shards = Shards(folder, FLAGS.shards, vocabulary, FLAGS.deduplicate)
    wanted = [shard for shard in range(FLAGS.shards) if not shards.counts(shard)]
    if len(wanted) < FLAGS.shards:
        print(
            f"going on: {FLAGS.shards - len(wanted)} of {FLAGS.shards} shards are whole", flush=True
        )
    parts = FLAGS.parts or os.cpu_count()
    dropped = distributed.make_shards(
        shards, wanted, settings, filters, parts, FLAGS.shards_at_a_time, options
    )
    counts = [shards.counts(shard) for shard in range(FLAGS.shards)]
    if None in counts:
        raise OSError(
            f"{shards.path(counts.index(None))} is not there. Name an --output_dir that all "
            "workers of Beam see."
        )
    write_json(
        folder / manifest.MANIFEST,
        manifest.make(preparation, held_out, vocabulary, counts, dropped),
    )


def _filters(FLAGS, corpus):
    scripts = [
        scripts_of(language) if FLAGS.filter_scripts else None
        for language in (corpus.source_language, corpus.target_language)
    ]
    return Filters(FLAGS.max_length_ratio, FLAGS.filter_untranslated, *scripts)


def _vocabulary(FLAGS, folder, settings, filters, tags):
    """The vocabulary that is asked for, else the folder's own, else a new one."""
    for path in (FLAGS.vocabulary, folder / manifest.VOCABULARY):
        if path and os.path.exists(path):
            return Vocabulary.load(path)
    dropped = collections.Counter()
    pairs = sample(
        kept(corpora.stream(**settings, dropped=dropped), filters, dropped),
        FLAGS.vocabulary_sentences // 2,
    )
    if not pairs:
        raise ValueError(
            f"no pair is left to learn a vocabulary from: {manifest.enumeration(dropped)} were "
            "dropped."
        )
    print(
        f"learning a vocabulary of {FLAGS.vocabulary_size:,} pieces from {2 * len(pairs):,} "
        "sentences",
        flush=True,
    )
    return learn(itertools.chain.from_iterable(pairs), FLAGS.vocabulary_size, tags)


def _write_lines(path, lines):
    text = "".join(line.replace("\n", " ") + "\n" for line in lines).encode("utf-8")
    write_whole(path, lambda temporary: temporary.write_bytes(gzip.compress(text, mtime=0)))


def _stop_at_once(*_):
    # Files are whole or not there, so nothing is to be tidied; Beam, and what runs inside it, would
    # take the interruption for an error.
    print(
        "error: interrupted. What was saved stays; the same command goes on from there.",
        file=sys.stderr,
    )
    os._exit(130)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, _stop_at_once)
    flags.run(main, GROUPS)
