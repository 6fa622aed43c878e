"""Pairs of sentences to shards of token ids (Vaswani et al. 2017, section 5.1).

The digest of a pair's text decides its shard and its place there. So the records do not depend on
the number of workers and parts, they are shuffled, equal pairs are neighbours, and an interrupted
preparation keeps its whole shards.

A shard is one group of Beam's, which one worker holds in memory: about 0.5 GB for a million pairs
of 20 tokens a side. So a shard should have at most two million pairs. Beam's in-process runner
holds all shards that are made together: about 0.6 GB for a million pairs.
"""

import collections
import functools
import itertools
import logging
import pathlib
import struct

import numpy as np

from pipelines import corpora
from pipelines.batches.texts import TokenizedPairs, token_ids
from pipelines.corpora.record_files import read_json, write_shard
from pipelines.dropped import Dropped
from pipelines.prepare.beam_runner import pipeline_of
from pipelines.prepare.filtering import DIGEST, usable_pairs
from pipelines.vocabularies.token_ids import TokenIds, smallest_dtype
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.whole_files import write_json

BATCH = 8192
# Before each packed pair: its digest, the bytes of its source ids, and of its target ids.
HEADER = struct.Struct(f"<{DIGEST}sii")
LONGEST_COUNTED = 1000
DROPPED = ".dropped.json"

logger = logging.getLogger(__name__)


# The class that training uses too: some models also replace text.
_vocabulary = functools.cache(Vocabulary)


def tokenized(pairs, models, shards, missing):
    """Tokenize the pairs of `usable_pairs` that belong to the missing ones of some shards, with the
    serialized models of sources and targets. Yield, for each batch and shard, its number and its
    packed pairs, each a header and ids.
    """
    vocabularies = [_vocabulary(model) for model in models]
    dtype = smallest_dtype(vocabularies[0].size).newbyteorder("<")
    missing = frozenset(missing)
    numbered = ((int.from_bytes(pair[0][-8:], "little") % shards, *pair) for pair in pairs)
    numbered = (pair for pair in numbered if pair[0] in missing)
    while batch := list(itertools.islice(numbered, BATCH)):
        packed = collections.defaultdict(bytearray)
        numbers, keys, *sides = zip(*batch, strict=True)
        sides = map(token_ids, sides, vocabularies)
        for number, key, *ids in zip(numbers, keys, *sides, strict=True):
            source, target = (side.astype(dtype, copy=False).tobytes() for side in ids)
            packed[number] += HEADER.pack(key, len(source), len(target)) + source + target
        yield from ((number, bytes(pairs)) for number, pairs in packed.items())


def unpacked(packed):
    """Yield the pairs that `tokenized` packed: (digest, source, target), the ids as bytes."""
    start = 0
    while start < len(packed):
        key, source, target = HEADER.unpack_from(packed, start)
        middle = start + HEADER.size + source
        end = middle + target
        yield key, packed[start + HEADER.size : middle], packed[middle:end]
        start = end


class Shards:
    """The shards of a preparation and their counts, in a folder that all workers see."""

    def __init__(self, folder, number, vocabulary, deduplicate):
        self.folder = pathlib.Path(folder)
        self.number = number
        self.deduplicate = deduplicate
        self.models = (vocabulary.source.model, vocabulary.target.model)
        self.fingerprint = vocabulary.fingerprint
        self.dtype = smallest_dtype(vocabulary.size)

    def path(self, shard, ending="tfrecord.gz"):
        return self.folder / f"train-{shard:05d}-of-{self.number:05d}.{ending}"

    def counts(self, shard):
        """Read the counts of a shard; None if it is not whole or has another vocabulary."""
        try:
            counts = read_json(self.path(shard, "json"))
            whole = {"bytes": self.path(shard).stat().st_size, "vocabulary": self.fingerprint}
            return counts if counts and whole.items() <= counts.items() else None
        except (ValueError, FileNotFoundError):
            return None

    def write(self, shard, parts):
        """Write the pairs of a shard in the order of their digests, then its counts."""
        pairs = sorted(itertools.chain.from_iterable(map(unpacked, parts)))
        total = len(pairs)
        if self.deduplicate:
            pairs = [next(equal) for _, equal in itertools.groupby(pairs, lambda pair: pair[0])]
        sides = [self._token_ids([pair[side] for pair in pairs]) for side in (1, 2)]
        path = self.path(shard)
        write_shard(path, TokenizedPairs(*sides))
        counts = {
            "file": path.name,
            "vocabulary": self.fingerprint,
            "pairs": len(pairs),
            "duplicates": total - len(pairs),
        }
        counts["bytes"] = path.stat().st_size
        for name, ids in zip(("source", "target"), sides, strict=True):
            counts[f"{name}_tokens"] = len(ids.flat)
            lengths = np.minimum(ids.lengths, LONGEST_COUNTED)
            counts[f"{name}_lengths"] = np.bincount(lengths).tolist()
        write_json(self.path(shard, "json"), counts)
        logger.info("%s: %s pairs", path.name, f"{len(pairs):,}")

    def _token_ids(self, sentences):
        flat = np.frombuffer(b"".join(sentences), self.dtype.newbyteorder("<"))
        lengths = [len(sentence) // self.dtype.itemsize for sentence in sentences]
        return TokenIds.of_lengths(flat.astype(self.dtype, copy=False), lengths)


def make_shards(shards, missing, settings, filters, parts, at_a_time, options):
    """Read a corpus' training side by Beam's workers, in this process or in a cluster, one for each
    part, and write the missing shards, `at_a_time` of them in one reading of the corpus: fewer need
    less memory. Return reason -> number of pairs left out, those of whole shards included.
    """
    at_a_time = at_a_time or shards.number
    # Even without a shard to make, the corpus is read once to count what is left out.
    for start in range(0, max(1, len(missing)), at_a_time):
        _run(shards, missing[start : start + at_a_time], settings, filters, parts, options)
    dropped = read_json(shards.folder / DROPPED)
    # It does not exist if a worker wrote elsewhere: then shards are missing too.
    (shards.folder / DROPPED).unlink(missing_ok=True)
    return dropped or {}


def _run(shards, missing, settings, filters, parts, options):
    import apache_beam as beam

    with pipeline_of(options) as pipeline:
        read = (
            pipeline
            | "parts" >> beam.Create(range(parts))
            | "spread" >> beam.Reshuffle()
            | "read, filter, tokenize"
            >> beam.FlatMap(_read, parts, settings, filters, shards, missing)
            .with_output_types(tuple[int, bytes])
            .with_outputs("dropped", main="pairs")
        )
        # A shard without pairs is written too.
        empty = pipeline | "empty shards" >> beam.Create(
            [(shard, b"") for shard in missing]
        ).with_output_types(tuple[int, bytes])
        (
            (read.pairs, empty)
            | beam.Flatten()
            | beam.GroupByKey()
            | "write" >> beam.MapTuple(shards.write)
        )
        dropped = read.dropped | beam.CombinePerKey(sum) | beam.combiners.ToDict()
        path = shards.folder / DROPPED
        dropped | "write dropped" >> beam.Map(lambda counts: write_json(path, counts))


def _read(part, parts, settings, filters, shards, missing):
    """Yield the tokenized pairs of a part, and the number of its pairs dropped for each reason."""
    from apache_beam.pvalue import TaggedOutput

    dropped = Dropped()
    text = corpora.stream(**settings, part=part, parts=parts, dropped=dropped)
    pairs = usable_pairs(text, filters, dropped)
    yield from tokenized(pairs, shards.models, shards.number, missing)
    yield from (TaggedOutput("dropped", reason) for reason in dropped.items())
