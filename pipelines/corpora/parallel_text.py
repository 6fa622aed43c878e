"""Sentence pairs and the corpus made of them (Vaswani et al. 2017, section 5.1)."""

import dataclasses
from collections.abc import Iterable


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
                f"`targets` must have as many sentences as `sources`. Received: {len(self.sources)} sources and "
                f"{len(self.targets)} targets. Pass one translation for each sentence."
            )

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]]) -> "ParallelText":
        """Makes a text of (source, target) pairs.

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
        train: pairs to learn from.
        valid: pairs to watch while learning.
        test: pairs to report on.
        dropped: reason -> number of pairs left out for it, all splits together; only reasons that occurred.
    """

    name: str
    source_language: str
    target_language: str
    train: ParallelText
    valid: ParallelText
    test: ParallelText
    dropped: dict[str, int]
