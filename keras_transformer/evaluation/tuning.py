"""Scores of each beam size with each length penalty. The paper's were "chosen after experimentation
on the development set" (Vaswani et al. 2017, section 6.1).
"""

import dataclasses
import sys
from collections.abc import Callable, Sequence

from keras_transformer.evaluation.table import aligned


@dataclasses.dataclass(frozen=True)
class Grid:
    """Scores in points out of 100: a row for each beam size, a column for each length penalty."""

    beam_sizes: Sequence[int]
    length_penalties: Sequence[float]
    scores: Sequence[Sequence[float]]

    @property
    def best(self) -> tuple[int, float, float]:
        """Beam size, length penalty and score of the highest score. Among equal scores it is that
        of the smallest beam, which is the fastest, and then of the first penalty.
        """
        cells = [
            (score, -size, -place)
            for size, row in zip(self.beam_sizes, self.scores, strict=True)
            for place, score in enumerate(row)
        ]
        score, size, place = max(cells)
        return -size, self.length_penalties[-place], score

    def table(self) -> str:
        """Return the scores as a table; an asterisk marks the best."""
        best = self.best[:2]
        rows = [["beam", *(f"alpha {alpha:g} " for alpha in self.length_penalties)]]
        for size, row in zip(self.beam_sizes, self.scores, strict=True):
            cells = zip(self.length_penalties, row, strict=True)
            marked = [
                f"{score:.2f}{'*' if (size, alpha) == best else ' '}" for alpha, score in cells
            ]
            rows.append([str(size), *marked])
        return aligned(rows)


def score_searches(
    translate: Callable[[int, Sequence[float]], Sequence[Sequence[str]]],
    quality: Callable[[Sequence[str]], float],
    beam_sizes: Sequence[int],
    length_penalties: Sequence[float],
) -> Grid:
    """Score each beam size with each length penalty. `translate` takes a size and all penalties,
    and returns for each sentence a translation by each penalty; `quality` scores one translation of
    each sentence, in points out of 100.
    """
    scores = []
    for size in beam_sizes:
        columns = zip(*translate(size, length_penalties), strict=True)
        scores.append([quality(column) for column in columns])
    return Grid(beam_sizes, length_penalties, scores)


def beam_sizes_of(texts: Sequence[str], most: int) -> list[int]:
    """Read --beam_sizes, each at most `most`."""
    return _numbers("beam_sizes", texts, int, (1, most), f"integers from 1 to {most}")


def length_penalties_of(texts: Sequence[str]) -> list[float]:
    """Read --length_penalties."""
    return _numbers(
        "length_penalties", texts, float, (0, sys.float_info.max), "numbers of at least 0"
    )


def refuse_one_hypothesis(coverage_penalty: float | None, beam_sizes: Sequence[int]) -> None:
    """Refuse a beam of 1 with a penalty that chooses among hypotheses."""
    if coverage_penalty and 1 in beam_sizes:
        larger = ",".join(str(size) for size in beam_sizes if size > 1) or "2,4,8"
        raise ValueError(
            f"--coverage_penalty={coverage_penalty:g} chooses among hypotheses, and a beam of 1 "
            f"has one. Received: --beam_sizes={','.join(map(str, beam_sizes))}. Pass "
            f"--beam_sizes={larger}."
        )


def _numbers(flag, texts, kind, bounds, expected):
    try:
        numbers = [kind(text) for text in texts]
        valid = all(bounds[0] <= number <= bounds[1] for number in numbers)
    except ValueError:
        valid = False
    if not valid or not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(
            f"--{flag} must be {expected}, joined by commas, each once. Received: "
            f"--{flag}={','.join(texts)}."
        )
    return numbers
