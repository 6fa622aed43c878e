"""What must and must not come of section 6.1's decoding (Vaswani et al. 2017) without TensorFlow:
the rules of `constraints` and `span_constraints` as numbers that a step adds to log P.

A row is one of b K hypotheses; M is the number of marks of protected spans.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.decoding.forbidden_words import ForbiddenWords
from keras_transformer.decoding.options import DecodingOptions
from pipelines.special_ids import EOS, PAD

NEVER = np.float32(-np.inf)
NO_FACTOR = np.ones((1, 1), np.float32)
NOT_YET = -1
# Beams of `other_beams` that last until K hypotheses have ended.
FILLING = ("until_full", "until_worse")


class Spans(NamedTuple):
    """Which marks must come: see `SpanConstraints`."""

    marks: np.ndarray
    count: np.ndarray
    opened_by: np.ndarray


class NumpyRules:
    """The rules that options ask for, with a vocabulary of V, those of spans, and forbidden words.
    The first `given` tokens of each prefix cost nothing.

    Called with what is searched, arrays by name with b rows, and the ids of b K hypotheses that
    have come, BOS the first of each, it gives the bias and the factor of a step of `numpy_search`.

    Attributes:
        free: the numbers of tokens after which no rule asks for more than is always barred.
    """

    def __init__(
        self,
        options: DecodingOptions,
        vocabulary_size: int,
        spans: Spans | None,
        forbidden: ForbiddenWords | None = None,
        given: int = 0,
    ):
        self._options = options
        self._given = given
        in_beam = options.beam_size != 1 and not options.samples
        self._fills = in_beam and options.beam_form in FILLING
        self._forbidden = forbidden
        self._size = vocabulary_size
        self._spans = spans
        self._penalizes = options.repetition_penalty != 1.0
        marks = () if spans is None else spans.marks
        # What never comes, and what never comes of sentences without spans.
        self._barred = _bias(vocabulary_size, options.barred)
        self._always = _bias(vocabulary_size, (*options.barred, *marks))
        self.free = range(0)

    def wishes(
        self, limits: Sequence[int], minima: Sequence[int], prefixes: Sequence[Sequence[int]]
    ) -> dict[str, np.ndarray]:
        """What is wished for each sentence, arrays of B rows."""
        lengths = np.array([len(prefix) for prefix in prefixes], np.int64)
        padded = np.full((len(prefixes), max(lengths, default=0)), PAD)
        for row, prefix in zip(padded, prefixes, strict=True):
            row[: len(prefix)] = prefix
        limits = np.maximum(limits, np.where(lengths > 0, lengths + 1, 0))
        searched = {"minimum": np.minimum(minima, limits), "prefix": padded}
        if self._spans is not None and self._spans.count.any():
            searched |= {"count": self._spans.count, "opened_by": self._spans.opened_by}
            limits = np.maximum(limits, self._spans.count.sum(axis=1) + 1 + lengths)
        elif not (self._options.no_repeat_ngram_size or self._forbidden or self._penalizes):
            first = max(padded.shape[1], searched["minimum"].max(initial=1) - 1)
            self.free = range(first, min(limits, default=1) - 1)
        return {**searched, "limit": limits}

    def __call__(
        self, searched: Mapping[str, np.ndarray], came: Sequence[list[int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        position = len(came[0]) - 1
        if position in self.free:
            return self._always, NO_FACTOR
        beam = len(came) // len(searched["limit"])
        rows = np.array(came, np.int32)[:, 1:]
        factor = NO_FACTOR
        if self._penalizes and position:
            factor = np.ones((len(rows), self._size), np.float32)
            np.put_along_axis(factor, rows, np.float32(self._options.repetition_penalty), axis=1)
        forced = np.where(searched["limit"] == position + 1, EOS, PAD)
        prefix = searched["prefix"]
        if position < prefix.shape[1]:
            forced = np.where(prefix[:, position] != PAD, prefix[:, position], forced)
        too_short = position + 1 < searched["minimum"]
        n = self._options.no_repeat_ngram_size
        has_spans = "count" in searched
        if not (n or has_spans or self._forbidden or forced.any() or too_short.any()):
            return self._always, factor
        always = self._barred if has_spans else self._always
        bias = np.broadcast_to(always, (len(rows), self._size)).copy()
        bias[np.repeat(too_short, beam), EOS] = NEVER
        for row, ids in enumerate(rows.tolist() if n else ()):
            bias[row, _repeating(ids, n)] = NEVER
        if self._forbidden:
            bias[self._forbidden.bars(rows)] = NEVER
        if has_spans:
            self._keep_spans(bias, rows, position, searched, beam)
        forced = np.repeat(forced, beam)
        is_forced = forced != PAD
        bias[is_forced] = NEVER
        bias[is_forced, forced[is_forced]] = 0
        return bias, factor

    def costs(
        self, logs: np.ndarray, searched: Mapping[str, np.ndarray], position: int
    ) -> np.ndarray:
        """What a step adds to scores, (b K, count): log P, or 0 where the only token that may come
        costs nothing: one that is given, and in beams that are to fill the EOS at the limit.
        """
        if position >= self._given and not self._fills:
            return logs
        costs_nothing = (searched["limit"] == position + 1) | (position < self._given)
        of_rows = np.repeat(costs_nothing, len(logs) // len(costs_nothing))[:, None]
        return np.where(of_rows, np.where(np.arange(logs.shape[1]), NEVER, np.float32(0)), logs)

    def _keep_spans(self, bias, rows, position, searched, beam):
        """What `SpanConstraints` does, to the bias of each row."""
        count, opened_by, limit = (
            np.repeat(searched[name], beam, axis=0) for name in ("count", "opened_by", "limit")
        )
        came = rows[:, :, None] == self._spans.marks
        missing = count - came.sum(axis=1)
        left = np.maximum(missing, 0).sum(axis=1)
        may_come = (missing > 0) & _may_close(came, opened_by)
        of_marks = np.where(may_come, bias[:, self._spans.marks], NEVER)
        bias[(limit - position <= left + 1) & (left > 0)] = NEVER
        bias[left > 0, EOS] = NEVER
        bias[:, self._spans.marks] = of_marks


@np.errstate(over="ignore")  # LiteRT's graphs have the lowest float32 of what never comes.
def likely(logs: np.ndarray, temperature: float, top_p: float | None) -> np.ndarray:
    """Of log P (rows, count), best first, what tokens are drawn by: log P at a temperature, but for
    a constant; -inf of those that the likeliest, which hold top_p of the probability, leave out.
    """
    drawable = (logs - logs[:, :1]) / np.float32(temperature)
    if top_p is None or top_p >= 1:
        return drawable
    shares = np.exp(drawable)
    held = np.cumsum(shares, axis=1) - shares
    counts = held < np.float32(top_p) * shares.sum(axis=1, keepdims=True)
    counts[:, 0] = True
    return np.where(counts, drawable, NEVER)


def shares(logs: np.ndarray, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    """How likely each token is to be drawn, (V,), of log P of all, best first; top_k 0: all."""
    drawn = np.zeros_like(logs)
    kept = slice(top_k if top_k > 0 else None)
    drawn[kept] = np.exp(likely(logs[None, kept], temperature, top_p)[0])
    return drawn / drawn.sum()


def refuse_unknown(options: DecodingOptions) -> None:
    """Refuse options that the search in NumPy has not."""
    for name in ("coverage_penalty", "constrained"):
        if asked := getattr(options, name):
            raise ValueError(
                f"models of ONNX and LiteRT are searched without it: {name}={asked}. "
                "Choose another, or take the run's folder or its SavedModel."
            )


def _bias(size, never):
    """Zeros of any width change nothing."""
    bias = np.zeros((1, size if never else 1), np.float32)
    bias[:, never] = NEVER
    return bias


def _may_close(came, opened_by):
    """Which marks close the innermost open tag, or none, booleans (rows, M)."""
    steps = np.arange(came.shape[1])[:, None]
    # When each mark came: (rows, M).
    when = np.where(came, steps, NOT_YET).max(axis=1, initial=NOT_YET)
    closes = opened_by >= 0
    opening = np.take_along_axis(when, np.maximum(opened_by, 0), axis=1)
    is_open = closes & (opening > NOT_YET) & (when == NOT_YET)
    innermost = np.where(is_open, opening, NOT_YET).max(axis=1, keepdims=True)
    return ~closes | (is_open & (opening == innermost))


def _repeating(ids, n):
    """The tokens that came after an earlier occurrence of the last n - 1."""
    context = ids[len(ids) - n + 1 :]
    starts = range(max(len(ids) - n + 1, 0))
    return [ids[start + n - 1] for start in starts if ids[start : start + n - 1] == context]
