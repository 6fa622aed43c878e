"""What is left out of a corpus, counted by its reason."""

import collections
from collections.abc import Iterable, Mapping


class Dropped(collections.Counter):
    """Reason -> how many pairs were left out for it; `firsts`: reason -> where the first stands,
    such as "train.en, line 3". If strict, the first that would be left out is refused instead.
    """

    def __init__(self, counts: Mapping[str, int] | Iterable[str] = (), strict: bool = False):
        super().__init__(counts)
        self.strict = strict
        self.firsts = dict(getattr(counts, "firsts", {}))

    def leave_out(self, reason: str, place: str, error: str | None = None) -> None:
        """Count one, by a reason of few words and its place, or refuse it if `strict`."""
        if self.strict:
            raise ValueError(error or f"{place}: {reason}. Correct it, or leave out --strict.")
        self.count(reason, place)

    def count(self, reason: str, place: str) -> None:
        """Count one that `strict` leaves alone, such as a tree of traces alone."""
        self[reason] += 1
        self.firsts.setdefault(reason, place)

    @classmethod
    def joined(cls, several: Iterable[Mapping[str, int]]) -> "Dropped":
        """What several corpora have left out together."""
        whole = cls()
        for one in several:
            whole.update(one)
            whole.firsts = {**getattr(one, "firsts", {}), **whole.firsts}
        return whole

    def describe(self) -> str:
        """Each number with its reason and its first place; "none"."""
        firsts = {reason: f" (first: {place})" for reason, place in self.firsts.items()}
        counted = (f"{self[one]:,} {one}{firsts.get(one, '')}" for one in filter(self.get, self))
        return ", ".join(counted) or "none"
