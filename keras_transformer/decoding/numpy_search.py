"""Section 6.1's decoding (Vaswani et al. 2017) in NumPy, for a model that runs without TensorFlow.
One search serves for beam search, for greedy search, which is a beam of 1 without a penalty, and
for samples, each a beam of 1 whose tokens are drawn. Results equal those of TensorFlow's searches.

Shapes as in `keras_transformer.decoding`; a row is one of b K hypotheses. A model has

    start(rows) -> the state before the first token
    step(ids, position, rows, count, bias, factor, state, source)
        -> logs, tokens, state

    rows            rows of the state that the hypotheses continue, integers (b K,)
    factor          divides positive logits and multiplies the others, float32, broadcastable to
                    (b K, V)
    bias            added to log P of each token, likewise
    logs, tokens    log P and ids of the `count` best tokens of each row after `bias`, (b K, count),
                    best first; PAD and BOS have -inf
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.decoding.forbidden_words import ForbiddenWords
from keras_transformer.decoding.numpy_rules import FILLING, NEVER, NumpyRules, Spans, log_weights
from keras_transformer.decoding.options import BEAM_SIZE, LENGTH_PENALTY, DecodingOptions
from pipelines.random_numbers import GOLDEN, mix
from pipelines.special_ids import BOS, EOS, PAD


class Hypothesis(NamedTuple):
    """A finished hypothesis: its score, its tokens, EOS the last, and log P of each."""

    score: float
    ids: list[int]
    log_probabilities: list[float]


def beam_and_penalty(options: DecodingOptions) -> tuple[int, float]:
    """Return K and alpha of a beam by these options: the paper's by default."""
    alpha = LENGTH_PENALTY if options.length_penalty is None else options.length_penalty
    return options.beam_size or BEAM_SIZE, alpha


class NumpySearch:
    """The search of options, with a vocabulary of V and forbidden words. The first `free_prefix`
    tokens of each prefix cost nothing and are no part of the results.
    """

    def __init__(
        self,
        options: DecodingOptions,
        vocabulary_size: int,
        forbidden: ForbiddenWords | None = None,
        free_prefix: int = 0,
    ):
        self._options = options
        self._free_prefix = free_prefix
        self._forbidden = forbidden
        self._size = vocabulary_size
        self._samples = options.samples
        beam, alpha = beam_and_penalty(options)
        form = options.beam_form
        if options.samples or beam == 1:
            beam = 1
            alpha = 0.0
            form = "leaving"
        needed = beam if form in FILLING else options.num_hypotheses
        penalty = (np.float32(alpha), options.length_penalty_form)
        self._settings = BeamSettings(beam, form, min(needed, beam), free_prefix, *penalty)
        count = (options.top_k or vocabulary_size) if options.samples else 2 * beam
        self._count = np.array(min(count, vocabulary_size), np.int32)

    def __call__(
        self,
        model,
        source: Sequence[np.ndarray],
        limits: Sequence[int],
        minima: Sequence[int],
        prefixes: Sequence[Sequence[int]],
        seeds: Sequence[int],
        spans: Spans | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the n best hypotheses of each of B sentences; arguments as of any search. A prefix
        is a list, empty if there is none. `spans` must come in the results.
        """
        beams = self._samples or 1
        rules = NumpyRules(self._options, self._size, spans, self._forbidden, self._free_prefix)
        unfinished = rules.wishes(limits, minima, prefixes)
        if self._samples:
            unfinished = {key: np.repeat(rows, beams, axis=0) for key, rows in unfinished.items()}
            unfinished["key"] = self._keys(seeds)
            source = [np.repeat(rows, beams, axis=0) for rows in source]
        results = self._run(model, source, unfinished, rules)
        # Hypotheses that stay in the beam are in its order.
        in_order = list if self._settings.form == "staying" else _best_first
        n = self._options.num_hypotheses
        starts = range(0, len(results), beams)
        return [in_order(itertools.chain(*results[start : start + beams]))[:n] for start in starts]

    def _keys(self, seeds):
        """Return the random key of each sample of each sentence."""
        keys = mix(GOLDEN + np.array(seeds, np.int64).astype(np.uint64))
        seed = np.array([1 if self._options.seed is None else self._options.seed])
        keys = mix(keys + GOLDEN * (seed.astype(np.uint64) + 1))
        numbers = np.arange(1, self._samples + 1, dtype=np.uint64)
        return mix(keys[:, None] + GOLDEN * numbers).reshape(-1)

    def _run(self, model, source, unfinished, rules):
        """Return the finished hypotheses of each row of `unfinished`: there is a beam for each."""
        kind = StayingBeam if self._settings.form == "staying" else Beam
        beams = [kind(self._settings, limit) for limit in unfinished["limit"].tolist()]
        going = beams
        rows = np.arange(sum(len(beam.hypotheses) for beam in beams), dtype=np.int32)
        state = model.start(len(rows))
        for position in range(max(unfinished["limit"], default=0)):
            hypotheses = itertools.chain(*(beam.hypotheses for beam in going))
            histories, _, sums = zip(*hypotheses, strict=True)
            bias, factor = rules(unfinished, histories)
            newest = np.array([ids[-1] for ids in histories], np.int32).reshape(len(going), -1)
            place = np.array(position, np.int32)
            logs, tokens, state = model.step(
                newest, place, rows, self._count, bias, factor, state, source
            )
            if self._samples:
                logs, tokens = self._draw(logs, tokens, position, unfinished["key"])
            scores = np.array(sums, np.float32)[:, None] + rules.costs(logs, unfinished, position)
            # For a few candidates of each sentence lists are faster than arrays.
            lists = (array.reshape(len(going), -1).tolist() for array in (scores, tokens, logs))
            parents = [beam.extend(*of_beam) for beam, *of_beam in zip(going, *lists, strict=True)]
            hopeful = [beam.hopeful() for beam in going]
            most = max(hopeful)
            if not most:
                break
            remaining = [at for at, count in enumerate(hopeful) if count]
            width = newest.shape[1]
            rows = [at * width + parent for at in remaining for parent in parents[at][:most]]
            rows = np.array(rows, np.int32)
            if len(remaining) < len(going):
                going = [going[at] for at in remaining]
                unfinished = {name: array[remaining] for name, array in unfinished.items()}
                source = [array[remaining] for array in source]
            for beam in going:
                del beam.hypotheses[most:]
        return [beam.finished for beam in beams]

    def _draw(self, logs, tokens, position, keys):
        """Draw a token for each row as `Sampling` does: log P and id, (rows, 1) each."""
        weights = log_weights(logs, self._options.temperature or 1.0, self._options.top_p)
        places = position * self._size + tokens.astype(np.int64) + 1
        draws = mix(keys[:, None] + GOLDEN * places.astype(np.uint64))
        uniform = ((draws >> 12).astype(np.float64) + 0.5) * 2.0**-52
        noise = -np.log(-np.log(uniform))
        choice = np.argmax(weights + noise.astype(np.float32), axis=1)[:, None]
        return np.take_along_axis(logs, choice, 1), np.take_along_axis(tokens, choice, 1)


class BeamSettings(NamedTuple):
    """K, the form of the beam, the finished hypotheses that a sentence needs, the free tokens of a
    prefix, and alpha and the form of the length penalty.
    """

    beam: int
    form: str
    needed: int
    free_prefix: int
    alpha: np.float32
    length_penalty_form: str

    def lp(self, length: int | np.ndarray) -> np.ndarray:
        """Return the length penalty of one length or several, float32."""
        length = np.float32(length)
        base = length if self.length_penalty_form == "length" else (5 + length) / 6
        return np.asarray(base, np.float32) ** self.alpha


class Beam:
    """The unfinished hypotheses of a sentence, likeliest first, as tuples of BOS and the ids, log P
    of each id, and its sum; and `finished`, those that have ended.
    """

    def __init__(self, settings: BeamSettings, limit: int):
        self._settings = settings
        self._longest = settings.lp(limit)
        # Marian's beam loses one with each hypothesis that ends.
        self._places = settings.beam
        # The worst of the finished scores that a sentence needs.
        self._to_beat = NEVER
        self.finished: list[Hypothesis] = []
        self.hypotheses: list[tuple[list[int], list[float], float]] = [([BOS], [], 0.0)]

    def extend(self, scores: list[float], tokens: list[int], logs: list[float]) -> list[int]:
        """Extend the hypotheses by candidates, equally many of each: their scores, last tokens and
        these tokens' log P. Return the number of the parent of each new hypothesis.
        """
        beam = self._settings.beam
        parents = self.hypotheses
        count = len(scores) // len(parents)
        places = self._places
        going = []
        ended = []
        best = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        for rank, candidate in enumerate(best[: 2 * beam]):
            (ended if tokens[candidate] == EOS else going).append(candidate)
            if tokens[candidate] == EOS and rank < places and scores[candidate] > NEVER:
                self._end(parents[candidate // count], scores[candidate], logs[candidate])
        alive = min(len(going), self._places)
        # Filled up, because all beams of a batch have equally many hypotheses.
        chosen = [*going, *ended][:beam]
        self.hypotheses = []
        for rank, candidate in enumerate(chosen):
            ids, of_ids, _ = parents[candidate // count]
            score = scores[candidate] if rank < alive else NEVER
            self.hypotheses.append(([*ids, tokens[candidate]], [*of_ids, logs[candidate]], score))
        return [candidate // count for candidate in chosen]

    def hopeful(self) -> int:
        """Return how many hypotheses, from the first on, may still lead to one of the n best: see
        `_is_done` of `BeamSearch` and `other_beams`. The others do not change the result.
        """
        form = self._settings.form
        sums = [score for *_, score in self.hypotheses]
        if form == "leaving":
            return sum(bool(np.float32(score) / self._longest > self._to_beat) for score in sums)
        goes_on = sums[0] > NEVER and self._places > 0
        if form in FILLING and self._to_beat > NEVER:
            bound = np.float32(sums[0]) / self._settings.lp(len(self.hypotheses[0][0]) - 1)
            goes_on = goes_on and form == "until_worse" and self._to_beat < bound
        return len(sums) if goes_on else 0

    def _end(self, hypothesis, score, log):
        """Add a hypothesis, extended by EOS, to `finished`."""
        ids, logs, _ = hypothesis
        _, form, needed, first, *_ = self._settings
        score = float(np.float32(score) / self._settings.lp(len(ids)))
        new = Hypothesis(score, [*ids[1 + first :], EOS], [*logs[first:], log])
        self.finished = _best_first([*self.finished, new])[: self._settings.beam]
        if len(self.finished) >= needed:
            self._to_beat = self.finished[needed - 1].score
        self._places -= form == "shrinking"


class StayingBeam(Beam):
    """A beam in which hypotheses that end stay: see `StayingBeamSearch`."""

    def __init__(self, settings: BeamSettings, limit: int):
        super().__init__(settings, limit)
        self._limit = limit
        # All have their places from the beginning.
        self.hypotheses += [([BOS], [], NEVER)] * (settings.beam - 1)

    def extend(self, scores: list[float], tokens: list[int], logs: list[float]) -> list[int]:
        parents = self.hypotheses
        count = len(scores) // len(parents)
        at_limit = len(parents[0][0]) == self._limit
        for place, (ids, _, score) in enumerate(parents):
            if at_limit or _has_ended(ids):
                # The only extension of a hypothesis that has ended is itself.
                scores[place * count : (place + 1) * count] = [score] + [NEVER] * (count - 1)
        lengths = np.array([_length(ids) for ids, *_ in parents])
        ranks = np.array(scores, np.float32) / np.repeat(self._settings.lp(lengths + 1), count)
        ranks = ranks.tolist()
        best = sorted(range(len(scores)), key=ranks.__getitem__, reverse=True)[: len(parents)]
        chosen = range(0, len(scores), count) if at_limit else best
        self.hypotheses = []
        self.finished = []
        for place, candidate in enumerate(chosen):
            ids, of_ids, _ = parents[candidate // count]
            # As in OpenNMT-tf, one that has ended gets the log P of the one that was at its place.
            token = PAD if _has_ended(ids) else tokens[candidate]
            score = parents[place][2] if _has_ended(ids) else scores[candidate]
            self.hypotheses.append(([*ids, token], [*of_ids, logs[candidate]], score))
        first = self._settings.free_prefix
        for ids, of_ids, score in self.hypotheses:
            if _has_ended(ids) and score > NEVER:
                end = _length(ids)
                score = float(np.float32(score) / self._settings.lp(end))
                self.finished.append(Hypothesis(score, ids[1 + first : 1 + end], of_ids[first:end]))
        return [candidate // count for candidate in chosen]

    def hopeful(self) -> int:
        goes_on = any(score > NEVER and not _has_ended(ids) for ids, _, score in self.hypotheses)
        return len(self.hypotheses) if goes_on else 0


def _has_ended(ids):
    return ids[-1] in (EOS, PAD)


def _length(ids):
    """Return |Y| of ids that begin with BOS."""
    return len(ids) - 1 - ids.count(PAD)


def _best_first(hypotheses):
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
