"""Sentence pairs, and corpora of them in three splits (Vaswani et al. 2017, section 5.1)."""

import array
import dataclasses
import hashlib
import itertools
import typing
import zlib
from collections.abc import Iterable, Sequence

import numpy as np

LONGEST_LINE = 100_000


@dataclasses.dataclass(frozen=True, eq=False)
class Origin:
    """Where pairs come from: the file or the split of a data set, the number of each pair there,
    from 1, and what the numbers count.
    """

    name: str
    numbers: Sequence[int]
    unit: str = "line"


@dataclasses.dataclass(frozen=True)
class ParallelText:
    """Sentences and their translations: `targets[i]` translates `sources[i]`. `origins` says where
    they come from, in order; () if unknown. Comparisons of texts ignore it.
    """

    sources: list[str]
    targets: list[str]
    origins: tuple[Origin, ...] = dataclasses.field(default=(), compare=False, repr=False)

    def __post_init__(self):
        if len(self.sources) != len(self.targets):
            raise ValueError(
                "`targets` must have as many sentences as `sources`. Received: "
                f"{len(self.sources)} sources and "
                f"{len(self.targets)} targets. Pass one translation for each sentence."
            )

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> "ParallelText":
        """Make a text from (source, target) pairs."""
        pairs = list(pairs)
        return cls([source for source, _ in pairs], [target for _, target in pairs])

    @classmethod
    def from_rows(
        cls, rows: Iterable[tuple[int, str, str]], name: str, unit: str = "line"
    ) -> "ParallelText":
        """Make a text from rows of (number, source, target); `name` and `unit` as in `Origin`."""
        numbers = array.array("q")
        text = cls([], [], (Origin(name, numbers, unit),))
        for number, source, target in rows:
            numbers.append(number)
            text.sources.append(source)
            text.targets.append(target)
        return text

    def __len__(self) -> int:
        return len(self.sources)

    def checksum(self) -> int:
        """Return the CRC-32 of all texts, in their order."""
        checksum = 0
        for text in itertools.chain(self.sources, self.targets):
            checksum = zlib.crc32(f"{text}\n".encode(errors="surrogatepass"), checksum)
        return checksum

    def place(self, index: int, side: str) -> str:
        """Return a pair's place for errors: "train.de, line 3", or the side and its number here."""
        offset = index
        for origin in self.origins:
            if offset < len(origin.numbers):
                return f"{origin.name}, {origin.unit} {origin.numbers[offset]}"
            offset -= len(origin.numbers)
        return f"{side}, text {index + 1}"

    def where(self, keep: Sequence[bool]) -> "ParallelText":
        """Return the pairs whose boolean in `keep` is true."""
        origins = []
        begin = 0
        for origin in self.origins:
            numbers = itertools.compress(origin.numbers, keep[begin:])
            begin += len(origin.numbers)
            origins.append(dataclasses.replace(origin, numbers=[*numbers]))
        sources = itertools.compress(self.sources, keep)
        return ParallelText([*sources], [*itertools.compress(self.targets, keep)], tuple(origins))


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A parallel corpus in its three splits.

    Args:
        name: the corpus' key in `pipelines.corpora.CORPORA`.
        train: training pairs: a `ParallelText`; or `Records`, whose `pairs()` are ids, if
            `pipelines.prepare.preparation` tokenized the corpus.
        dropped: reason -> number of pairs left out, of all splits together.
        tags: the distinct tags before sources, such as "<2de>". Each must be one piece of the
            vocabulary.
        weights: how often an epoch has each training pair on average, positive float64
            (len(train),); None: once each. Comparisons of corpora ignore it.
    """

    name: str
    source_language: str
    target_language: str
    train: typing.Any
    valid: ParallelText
    test: ParallelText
    dropped: dict[str, int]
    tags: tuple[str, ...] = ()
    # Not compared: `==` of arrays has no single truth value.
    weights: np.ndarray | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self):
        if self.weights is not None and self.weights.shape != (len(self.train),):
            raise ValueError(
                f"`weights` must have one weight for each of the {len(self.train)} training pairs. "
                f"Received: shape {self.weights.shape}. Pass None where all weigh the same."
            )


def split_of(source: str) -> str:
    """Return the split of a pair, by its source alone: 3 % test, 3 % valid, the rest train."""
    bucket = int(hashlib.sha256(source.encode("utf-8")).hexdigest(), 16) % 1000
    return "test" if bucket < 30 else "valid" if bucket < 60 else "train"


def objection(source: str, target: str) -> str | None:
    """Return why no corpus may hold a pair of stripped sides; None if it may."""
    if not source or not target:
        return "empty"
    if max(len(source), len(target)) > LONGEST_LINE:
        return "huge line"
    return None
