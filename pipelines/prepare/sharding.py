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
import hashlib
import itertools
import logging
import pathlib
import struct

import numpy as np

from pipelines.batches.texts import TokenizedPairs
from pipelines.corpora.manifest import read_json
from pipelines.corpora.record_files import write_shard
from pipelines.vocabularies.token_ids import TokenIds, smallest_dtype
from pipelines.whole_files import write_json

BATCH = 8192
DIGEST = 16
HEADER = struct.Struct(
    f"<{DIGEST}sii"
)  # of a packed pair: digest, bytes of source ids, bytes of target ids
LONGEST_COUNTED = 1000

logger = logging.getLogger(__name__)


def digest(source, target):
    """16 bytes that two pairs share only if they are equal."""
    source = source.encode("utf-8")
    return hashlib.blake2b(
        b"%d %b%b" % (len(source), source, target.encode("utf-8")), digest_size=DIGEST
    ).digest()


def kept(pairs, filters, dropped):
    """Yield the pairs that the filters leave, with their digests, and count the others by reason in
    `dropped`.
    """
    for source, target in pairs:
        if reason := filters.reason_to_drop(source, target):
            dropped[reason] += 1
        else:
            yield digest(source, target), source, target


def sample(pairs, size):
    """The `size` different pairs with the least digests: a random sample that does not depend on
    the order of reading.

    Args:
        pairs: as `kept` gives them.
        size: how many at most.

    Returns:
        (source, target), in the order of the digests.
    """
    least = {}
    bound = b"\xff" * (DIGEST + 1)
    for key, source, target in pairs:
        if key < bound:
            least[key] = source, target
        if len(least) > size + size // 4 + 1000:
            least = dict(sorted(least.items())[:size])
            bound = next(reversed(least))
    return [pair for _, pair in sorted(least.items())[:size]]


def shard_of(key, shards):
    """The shard of the pair with this digest."""
    return int.from_bytes(key[-8:], "little") % shards


def tokenized(pairs, models, shards, wanted):
    """Tokenize pairs in batches.

    Args:
        pairs: as `kept` gives them.
        models: bytes of the SentencePiece models of sources and of targets.
        shards: how many there are in all.
        wanted: numbers of the shards to make. Pairs of other shards are not tokenized.

    Yields:
        (shard, pairs): the bytes of all pairs in a row, each a header and its ids.
    """
    processors = [_processor(model) for model in models]
    dtype = smallest_dtype(processors[0].vocab_size()).newbyteorder("<")
    wanted = frozenset(wanted)
    numbered = ((shard_of(key, shards), key, source, target) for key, source, target in pairs)
    numbered = (pair for pair in numbered if pair[0] in wanted)
    while batch := list(itertools.islice(numbered, BATCH)):
        packed = collections.defaultdict(bytearray)
        numbers, keys, *sides = zip(*batch, strict=True)
        sides = (
            processor.encode(list(side), add_eos=True)
            for processor, side in zip(processors, sides, strict=True)
        )
        for number, key, *ids in zip(numbers, keys, *sides, strict=True):
            source, target = (np.array(side, dtype).tobytes() for side in ids)
            packed[number] += HEADER.pack(key, len(source), len(target)) + source + target
        yield from ((number, bytes(pairs)) for number, pairs in packed.items())


@functools.cache
def _processor(model):
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_proto=model)


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
    """The shards of a preparation, each a file and, beside it, its counts.

    Args:
        folder: of the files; all workers must see it.
        number: how many shards.
        vocabulary: a `Vocabulary` of both languages, or `SeparateVocabularies`.
        deduplicate: whether of equal pairs one stays.
    """

    def __init__(self, folder, number, vocabulary, deduplicate):
        self.folder = pathlib.Path(folder)
        self.number = number
        self.deduplicate = deduplicate
        self.models = (vocabulary.source.model, vocabulary.target.model)
        self.fingerprint = vocabulary.fingerprint
        self.dtype = smallest_dtype(vocabulary.size)

    def path(self, shard):
        return self.folder / f"train-{shard:05d}-of-{self.number:05d}.tfrecord.gz"

    def counts_path(self, shard):
        return self.folder / f"train-{shard:05d}-of-{self.number:05d}.json"

    def counts(self, shard):
        """The counts of a shard; None if it is not whole, or is of another vocabulary."""
        try:
            counts = read_json(self.counts_path(shard))
            whole = counts and (self.path(shard).stat().st_size, self.fingerprint) == (
                counts["bytes"],
                counts["vocabulary"],
            )
        except (ValueError, KeyError, FileNotFoundError):
            return None
        return counts if whole else None

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
            counts[f"{name}_lengths"] = np.bincount(
                np.minimum(ids.lengths, LONGEST_COUNTED)
            ).tolist()
        write_json(self.counts_path(shard), counts)
        logger.info("%s: %s pairs", path.name, f"{len(pairs):,}")

    def _token_ids(self, sentences):
        flat = np.frombuffer(b"".join(sentences), self.dtype.newbyteorder("<")).astype(
            self.dtype, copy=False
        )
        return TokenIds.of_lengths(
            flat, [len(sentence) // self.dtype.itemsize for sentence in sentences]
        )
