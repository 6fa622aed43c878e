"""The rules of `constraints` on section 6.1's decoding (Vaswani et al. 2017) without TensorFlow:
numbers that a step adds to log P.

A row is one of b K hypotheses; M is the number of marks of protected spans.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.decoding.forbidden_words import ForbiddenWords, bias_of
from keras_transformer.decoding.options import DecodingOptions
from pipelines.special_ids import EOS, PAD

NEVER = np.float32(-np.inf)
NO_FACTOR = np.ones((1, 1), np.float32)
NOT_YET = -1
# Beams of `other_beams` that go on until K hypotheses have ended.
FILLING = ("until_full", "until_worse")


class Spans(NamedTuple):
    """Which marks must come: see `SpanConstraints`."""

    marks: np.ndarray
    count: np.ndarray
    opened_by: np.ndarray


class NumpyRules:
    """The rules of options, of spans and of forbidden words, with a vocabulary of V. The first
    `free_prefix` tokens of each prefix cost nothing.

    Called with the unfinished sentences, arrays by name with b rows, and the ids of b K hypotheses,
    each from BOS, it returns the bias and the factor of a step of `numpy_search`.

    Attributes:
        free: positions at which only what is always barred is barred.
    """

    def __init__(
        self,
        options: DecodingOptions,
        vocabulary_size: int,
        spans: Spans | None,
        forbidden: ForbiddenWords | None = None,
        free_prefix: int = 0,
    ):
        self._options = options
        self._free_prefix = free_prefix
        in_beam = options.beam_size != 1 and not options.samples
        self._fills = in_beam and options.beam_form in FILLING
        self._forbidden = forbidden
        self._size = vocabulary_size
        self._spans = spans
        self._penalizes = options.repetition_penalty != 1.0
        marks = () if spans is None else spans.marks
        # The second one also bars the marks, for sentences without spans.
        self._barred = bias_of(vocabulary_size, options.barred)
        self._always = bias_of(vocabulary_size, (*options.barred, *marks))
        self.free = range(0)

    def wishes(
        self, limits: Sequence[int], minima: Sequence[int], prefixes: Sequence[Sequence[int]]
    ) -> dict[str, np.ndarray]:
        """Return the arrays by name, with B rows, that a search carries from step to step."""
        lengths = np.array([len(prefix) for prefix in prefixes], np.int64)
        padded = np.full((len(prefixes), max(lengths, default=0)), PAD)
        for row, prefix in zip(padded, prefixes, strict=True):
            row[: len(prefix)] = prefix
        limits = np.maximum(limits, np.where(lengths > 0, lengths + 1, 0))
        unfinished = {"minimum": np.minimum(minima, limits), "prefix": padded}
        if self._spans is not None and self._spans.count.any():
            unfinished |= {"count": self._spans.count, "opened_by": self._spans.opened_by}
            limits = np.maximum(limits, self._spans.count.sum(axis=1) + 1 + lengths)
        elif not (self._options.no_repeat_ngram_size or self._forbidden or self._penalizes):
            first = max(padded.shape[1], unfinished["minimum"].max(initial=1) - 1)
            self.free = range(first, min(limits, default=1) - 1)
        return {**unfinished, "limit": limits}

    def __call__(
        self, unfinished: Mapping[str, np.ndarray], histories: Sequence[list[int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        position = len(histories[0]) - 1
        if position in self.free:
            return self._always, NO_FACTOR
        beam = len(histories) // len(unfinished["limit"])
        rows = np.array(histories, np.int32)[:, 1:]
        factor = NO_FACTOR
        if self._penalizes and position:
            factor = np.ones((len(rows), self._size), np.float32)
            np.put_along_axis(factor, rows, np.float32(self._options.repetition_penalty), axis=1)
        forced = np.where(unfinished["limit"] == position + 1, EOS, PAD)
        prefix = unfinished["prefix"]
        if position < prefix.shape[1]:
            forced = np.where(prefix[:, position] != PAD, prefix[:, position], forced)
        too_short = position + 1 < unfinished["minimum"]
        n = self._options.no_repeat_ngram_size
        has_spans = "count" in unfinished
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
            self._keep_spans(bias, rows, position, unfinished, beam)
        forced = np.repeat(forced, beam)
        is_forced = forced != PAD
        bias[is_forced] = NEVER
        bias[is_forced, forced[is_forced]] = 0
        return bias, factor

    def costs(
        self, logs: np.ndarray, unfinished: Mapping[str, np.ndarray], position: int
    ) -> np.ndarray:
        """Return what a step adds to scores, (b K, count): log P, or 0 for a token that is forced
        and free: of the free prefix, or EOS at the limit in the beams of `FILLING`.
        """
        if position >= self._free_prefix and not self._fills:
            return logs
        is_free = (unfinished["limit"] == position + 1) | (position < self._free_prefix)
        of_rows = np.repeat(is_free, len(logs) // len(is_free))[:, None]
        return np.where(of_rows, np.where(np.arange(logs.shape[1]), NEVER, np.float32(0)), logs)

    def _keep_spans(self, bias, rows, position, unfinished, beam):
        """Apply the rules of `SpanConstraints` to the bias of each row, in place."""
        count, opened_by, limit = (
            np.repeat(unfinished[name], beam, axis=0) for name in ("count", "opened_by", "limit")
        )
        occurs = rows[:, :, None] == self._spans.marks
        missing = count - occurs.sum(axis=1)
        left = np.maximum(missing, 0).sum(axis=1)
        may_come = (missing > 0) & _may_close(occurs, opened_by)
        of_marks = np.where(may_come, bias[:, self._spans.marks], NEVER)
        bias[(limit - position <= left + 1) & (left > 0)] = NEVER
        bias[left > 0, EOS] = NEVER
        bias[:, self._spans.marks] = of_marks


@np.errstate(over="ignore")  # LiteRT's graphs give the lowest float32 to tokens that never come.
def log_weights(logs: np.ndarray, temperature: float, top_p: float | None) -> np.ndarray:
    """Return the logarithm of the probability of drawing each token, up to a constant, from log P
    (rows, count), the likeliest first; -inf outside the nucleus of top_p.
    """
    weights = (logs - logs[:, :1]) / np.float32(temperature)
    if top_p is None or top_p >= 1:
        return weights
    probabilities = np.exp(weights)
    before = np.cumsum(probabilities, axis=1) - probabilities
    in_nucleus = before < np.float32(top_p) * probabilities.sum(axis=1, keepdims=True)
    in_nucleus[:, 0] = True
    return np.where(in_nucleus, weights, NEVER)


def shares(logs: np.ndarray, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    """Return the probability of drawing each of V tokens, from log P, best first; top_k 0: all."""
    weights = np.zeros_like(logs)
    top = slice(top_k if top_k > 0 else None)
    weights[top] = np.exp(log_weights(logs[None, top], temperature, top_p)[0])
    return weights / weights.sum()


def refuse_unknown(options: DecodingOptions) -> None:
    """Refuse options that the search in NumPy does not support."""
    for name in ("coverage_penalty", "constrained"):
        if value := getattr(options, name):
            raise ValueError(
                f"models of ONNX and LiteRT are searched without it: {name}={value}. "
                "Choose another value, or use the run's folder or its SavedModel."
            )


def _may_close(occurs, opened_by):
    """Return which marks close the innermost open tag or close none, booleans (rows, M)."""
    steps = np.arange(occurs.shape[1])[:, None]
    # Where each mark came last: (rows, M).
    place = np.where(occurs, steps, NOT_YET).max(axis=1, initial=NOT_YET)
    closes = opened_by >= 0
    opening = np.take_along_axis(place, np.maximum(opened_by, 0), axis=1)
    is_open = closes & (opening > NOT_YET) & (place == NOT_YET)
    innermost = np.where(is_open, opening, NOT_YET).max(axis=1, keepdims=True)
    return ~closes | (is_open & (opening == innermost))


def _repeating(ids, n):
    """Return the tokens that followed an earlier occurrence of the last n - 1 tokens."""
    context = ids[len(ids) - n + 1 :]
    starts = range(max(len(ids) - n + 1, 0))
    return [ids[start + n - 1] for start in starts if ids[start : start + n - 1] == context]
