"""Counts of the pairs left out of a corpus, by reason."""

import collections
from collections.abc import Iterable, Mapping


class Dropped(collections.Counter):
    """Maps each reason to the number of pairs left out for it; `firsts` maps it to the place of the
    first, such as "train.en, line 3". If `strict`, the first pair to leave out is an error instead.
    """

    def __init__(self, counts: Mapping[str, int] | Iterable[str] = (), strict: bool = False):
        super().__init__(counts)
        self.strict = strict
        self.firsts = dict(getattr(counts, "firsts", {}))

    def leave_out(self, reason: str, place: str, error: str | None = None) -> None:
        """Count a pair by reason and place, or raise a ValueError if `strict`."""
        if self.strict:
            raise ValueError(error or f"{place}: {reason}. Correct it, or leave out --strict.")
        self.count(reason, place)

    def count(self, reason: str, place: str) -> None:
        """Count a pair that is left out even if `strict`, such as a duplicate."""
        self[reason] += 1
        self.firsts.setdefault(reason, place)

    @classmethod
    def joined(cls, several: Iterable[Mapping[str, int]]) -> "Dropped":
        """Return the sum of several corpora's counts."""
        total = cls()
        for counts in several:
            total.update(counts)
            total.firsts = {**getattr(counts, "firsts", {}), **total.firsts}
        return total

    def describe(self) -> str:
        """Return the counts in words, with the place of the first of each; "none" if all are 0."""
        firsts = {reason: f" (first: {place})" for reason, place in self.firsts.items()}
        counts = (f"{self[reason]:,} {reason}{firsts.get(reason, '')}" for reason in +self)
        return ", ".join(counts) or "none"
