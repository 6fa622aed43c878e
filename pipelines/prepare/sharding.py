"""Pairs of sentences to shards of token ids (Vaswani et al. 2017, section 5.1).

The digest of a pair's text chooses its shard, and its place in the shard. So the records are the
same whatever the number of workers and of parts, they are shuffled, equal pairs lie side by side,
and a shard that is whole stays when an interrupted preparation resumes.

A shard is one group of Beam's, and one worker holds it in memory: about 0.5 GB for a million pairs
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
from pipelines.prepare.beam_runner import beam_options, pipeline_of
from pipelines.prepare.filtering import DIGEST, usable_pairs
from pipelines.vocabularies.token_ids import TokenIds, smallest_dtype
from pipelines.vocabularies.vocabulary import Vocabulary
from pipelines.whole_files import write_json

BATCH = 8192
# Of a packed pair: digest, bytes of source ids, bytes of target ids.
HEADER = struct.Struct(f"<{DIGEST}sii")
LONGEST_COUNTED = 1000
DROPPED = ".dropped.json"

logger = logging.getLogger(__name__)


# As in training: it replaces text too, where a model says so.
_vocabulary = functools.cache(Vocabulary)


def tokenized(pairs, models, shards, wanted):
    """Tokenize pairs, as `usable_pairs` gives them, in batches, by the bytes of the models of
    sources and of targets: (shard, all its pairs in a row, each a header and its ids). Pairs of
    other shards than those wanted are not tokenized.
    """
    vocabularies = [_vocabulary(model) for model in models]
    dtype = smallest_dtype(vocabularies[0].size).newbyteorder("<")
    wanted = frozenset(wanted)
    numbered = ((int.from_bytes(pair[0][-8:], "little") % shards, *pair) for pair in pairs)
    numbered = (pair for pair in numbered if pair[0] in wanted)
    while batch := list(itertools.islice(numbered, BATCH)):
        packed = collections.defaultdict(bytearray)
        numbers, keys, *sides = zip(*batch, strict=True)
        sides = map(token_ids, sides, vocabularies)
        for number, key, *ids in zip(numbers, keys, *sides, strict=True):
            source, target = (side.astype(dtype, copy=False).tobytes() for side in ids)
            packed[number] += HEADER.pack(key, len(source), len(target)) + source + target
        yield from ((number, bytes(pairs)) for number, pairs in packed.items())


def unpacked(packed):
    """The pairs in what `tokenized` gave: (digest, source, target), the sides as bytes of ids."""
    start = 0
    while start < len(packed):
        key, source, target = HEADER.unpack_from(packed, start)
        middle = start + HEADER.size + source
        end = middle + target
        yield key, packed[start + HEADER.size : middle], packed[middle:end]
        start = end


class Shards:
    """The shards of a preparation, each with its counts, in a folder that all workers see."""

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
        """The counts of a shard; None if it is not whole, or is of another vocabulary."""
        try:
            counts = read_json(self.path(shard, "json"))
            whole = {"bytes": self.path(shard).stat().st_size, "vocabulary": self.fingerprint}
            return counts if counts and whole.items() <= counts.items() else None
        except (ValueError, FileNotFoundError):
            return None

    def write(self, shard, parts):
        """Write the pairs of a shard, in the order of their digests, then its counts."""
        pairs = sorted(itertools.chain.from_iterable(map(unpacked, parts)))
        found = len(pairs)
        if self.deduplicate:
            pairs = [next(equal) for _, equal in itertools.groupby(pairs, lambda pair: pair[0])]
        sides = [self._token_ids([pair[side] for pair in pairs]) for side in (1, 2)]
        path = self.path(shard)
        write_shard(path, TokenizedPairs(*sides))
        counts = {
            "file": path.name,
            "vocabulary": self.fingerprint,
            "pairs": len(pairs),
            "duplicates": found - len(pairs),
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


def make_shards(shards, wanted, settings, filters, parts, at_a_time=None, options=None):
    """Read a corpus' training side by workers of Beam, in this process or in a cluster, one for
    each part, and write those of its shards whose numbers are wanted, so many in one reading of the
    corpus: fewer take less memory. Gives how many pairs were left out, by the reason, those of
    shards that stay included.
    """
    options = options or beam_options()
    at_a_time = at_a_time or shards.number
    # Even without a shard to make, the corpus is read once to count what is left out.
    for start in range(0, max(1, len(wanted)), at_a_time):
        _run(shards, wanted[start : start + at_a_time], settings, filters, parts, options)
    dropped = read_json(shards.folder / DROPPED)
    # Not there if a worker wrote elsewhere: the missing shards show it.
    (shards.folder / DROPPED).unlink(missing_ok=True)
    return dropped or {}


def _run(shards, wanted, settings, filters, parts, options):
    import apache_beam as beam

    with pipeline_of(options) as pipeline:
        read = (
            pipeline
            | "parts" >> beam.Create(range(parts))
            | "spread" >> beam.Reshuffle()
            | "read, filter, tokenize"
            >> beam.FlatMap(_read, parts, settings, filters, shards, wanted)
            .with_output_types(tuple[int, bytes])
            .with_outputs("dropped", main="pairs")
        )
        # A shard without pairs is written too.
        empty = pipeline | "empty shards" >> beam.Create(
            [(shard, b"") for shard in wanted]
        ).with_output_types(tuple[int, bytes])
        (
            (read.pairs, empty)
            | beam.Flatten()
            | beam.GroupByKey()
            | "write" >> beam.MapTuple(shards.write)
        )
        dropped = read.dropped | beam.CombinePerKey(sum) | beam.combiners.ToDict()
        dropped | "write dropped" >> beam.Map(lambda one: write_json(shards.folder / DROPPED, one))


def _read(part, parts, settings, filters, shards, wanted):
    """Yield the tokenized pairs of a part, and how many of its pairs were dropped."""
    from apache_beam.pvalue import TaggedOutput

    dropped = Dropped()
    text = corpora.stream(**settings, part=part, parts=parts, dropped=dropped)
    pairs = usable_pairs(text, filters, dropped)
    yield from tokenized(pairs, shards.models, shards.number, wanted)
    yield from (TaggedOutput("dropped", reason) for reason in dropped.items())
