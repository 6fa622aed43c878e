"""Sentence pairs and the corpus made of them (Vaswani et al. 2017, section 5.1)."""

import dataclasses
import typing
from collections.abc import Iterable

import numpy as np

LONGEST_LINE = 100_000


@dataclasses.dataclass(frozen=True)
class ParallelText:
    """Sentences and their translations: `targets[i]` translates `sources[i]`.

    Args:
        sources: sentences to translate.
        targets: their translations, as many.

    Raises:
        ValueError: the two lists differ in length.
    """

    sources: list[str]
    targets: list[str]

    def __post_init__(self):
        if len(self.sources) != len(self.targets):
            raise ValueError(
                "`targets` must have as many sentences as `sources`. Received: "
                f"{len(self.sources)} sources and "
                f"{len(self.targets)} targets. Pass one translation for each sentence."
            )

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> "ParallelText":
        """Make a text of (source, target) pairs.

        Args:
            pairs: the pairs, in order.

        Returns:
            The text, one sentence and one translation a pair.
        """
        pairs = list(pairs)
        return cls([source for source, _ in pairs], [target for _, target in pairs])

    def __len__(self) -> int:
        return len(self.sources)


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A parallel corpus in its three splits.

    Args:
        name: the corpus' key in `pipelines.corpora.CORPORA`.
        source_language: language code of the sources.
        target_language: language code of the targets.
        train: pairs to learn from: text; or `Records`, whose `pairs()` are ids, if
            `pipelines.preparation` tokenized the corpus.
        valid: pairs to watch while learning.
        test: pairs to report on.
        dropped: reason -> number of pairs left out for it, of all splits together.
        tags: the tags before sources, such as "<2de>", each once. In the vocabulary each must be
            one piece.
        weights: how often each training pair is seen in an epoch, on average, float64
            (len(train),), positive; None: all once. Left out where corpora are compared.

    Raises:
        ValueError: `weights` of another shape.
    """

    name: str
    source_language: str
    target_language: str
    train: typing.Any
    valid: ParallelText
    test: ParallelText
    dropped: dict[str, int]
    tags: tuple[str, ...] = ()
    weights: np.ndarray | None = dataclasses.field(
        default=None, compare=False
    )  # Arrays have no one truth value.

    def __post_init__(self):
        if self.weights is not None and self.weights.shape != (len(self.train),):
            raise ValueError(
                f"`weights` must have one weight for each of the {len(self.train)} training "
                f"pairs. Received: shape {self.weights.shape}. "
                "Pass None where all weigh the same."
            )


def objection(source: str, target: str) -> str | None:
    """Why no corpus may hold a pair, both sides stripped; None if it may."""
    if not source or not target:
        return "empty"
    if max(len(source), len(target)) > LONGEST_LINE:
        return "huge line"
    return None
