"""Section 6.1's decoding (Vaswani et al. 2017) in NumPy, for a model that runs without TensorFlow.
One search serves for a beam, for greedy search, which is a beam of 1 without a penalty, and for
samples, each a beam of 1 whose tokens are drawn. It finds what the searches of TensorFlow find.

Shapes as in `keras_transformer.decoding`; a row is one of b K hypotheses. A model has

    start(rows) -> the state before the first token
    step(ids, position, rows, count, bias, factor, state, source)
        -> logs, tokens, state

    rows            which rows of the state the hypotheses go on from, integers (b K,)
    factor          what positive logits are divided and others multiplied by, float32,
                    broadcastable to (b K, V)
    bias            added to log P of each token, likewise
    logs, tokens    of each row the `count` highest after `bias`, (b K, count), best first; of PAD
                    and BOS -inf
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.decoding.forbidden_words import ForbiddenWords
from keras_transformer.decoding.numpy_rules import FILLING, NEVER, NumpyRules, Spans, likely
from keras_transformer.decoding.options import BEAM_SIZE, LENGTH_PENALTY, DecodingOptions
from pipelines.random_numbers import GOLDEN, mix
from pipelines.special_ids import BOS, EOS, PAD


class Hypothesis(NamedTuple):
    """A finished hypothesis: what it is ranked by, its tokens, EOS the last, and log P of each."""

    score: float
    ids: list[int]
    log_probabilities: list[float]


def beam_and_penalty(options: DecodingOptions) -> tuple[int, float]:
    """K and alpha of a beam by these options: the paper's where they say none."""
    alpha = LENGTH_PENALTY if options.length_penalty is None else options.length_penalty
    return options.beam_size or BEAM_SIZE, alpha


class NumpySearch:
    """The search that options ask for, with a vocabulary of V and the words that it forbids. The
    first `given` tokens of each prefix cost nothing, and are no part of what is found.
    """

    def __init__(
        self,
        options: DecodingOptions,
        vocabulary_size: int,
        forbidden: ForbiddenWords | None = None,
        given: int = 0,
    ):
        self._options = options
        self._given = given
        self._forbidden = forbidden
        self._vocabulary_size = vocabulary_size
        self._samples = options.samples
        beam, alpha = beam_and_penalty(options)
        form = options.beam_form
        if options.samples or beam == 1:
            beam = 1
            alpha = 0.0
            form = "leaving"
        most = beam if form in FILLING else options.num_hypotheses
        penalty = (np.float32(alpha), options.length_penalty_form)
        self._manner = Manner(beam, form, min(most, beam), given, *penalty)
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
        """The n best of what is found for each of B sentences; arguments as of any search. A
        prefix is a list, and [] where there is none. `spans` are those that must come.
        """
        copies = self._samples or 1
        more = (spans, self._forbidden, self._given)
        rules = NumpyRules(self._options, self._vocabulary_size, *more)
        searched = rules.wishes(limits, minima, prefixes)
        if self._samples:
            searched = {name: np.repeat(one, copies, axis=0) for name, one in searched.items()}
            searched["key"] = self._keys(seeds)
            source = [np.repeat(one, copies, axis=0) for one in source]
        found = self._run(model, source, searched, rules)
        each = (found[start : start + copies] for start in range(0, len(found), copies))
        # Hypotheses that stay in the beam are in its order.
        in_order = list if self._manner.form == "staying" else _best_first
        return [in_order(itertools.chain(*one))[: self._options.num_hypotheses] for one in each]

    def _keys(self, seeds):
        """What each sample of each sentence draws by."""
        keys = mix(GOLDEN + np.array(seeds, np.int64).astype(np.uint64))
        seed = np.array([1 if self._options.seed is None else self._options.seed])
        keys = mix(keys + GOLDEN * (seed.astype(np.uint64) + 1))
        numbers = np.arange(1, self._samples + 1, dtype=np.uint64)
        return mix(keys[:, None] + GOLDEN * numbers).reshape(-1)

    def _run(self, model, source, searched, rules):
        """What is found for each row of `searched`, a beam each, under rules."""
        kind = StayingBeam if self._manner.form == "staying" else Beam
        beams = [kind(self._manner, limit) for limit in searched["limit"].tolist()]
        going = beams
        rows = np.arange(sum(len(beam.hypotheses) for beam in beams), dtype=np.int32)
        state = model.start(len(rows))
        for position in range(max(searched["limit"], default=0)):
            came, _, sums = zip(*(one for beam in going for one in beam.hypotheses), strict=True)
            bias, factor = rules(searched, came)
            newest = np.array([ids[-1] for ids in came], np.int32).reshape(len(going), -1)
            place = np.array(position, np.int32)
            logs, tokens, state = model.step(
                newest, place, rows, self._count, bias, factor, state, source
            )
            if self._samples:
                logs, tokens = self._drawn(logs, tokens, position, searched["key"])
            scores = np.array(sums, np.float32)[:, None] + rules.costs(logs, searched, position)
            # For a few candidates of each sentence lists are faster than arrays.
            each = (one.reshape(len(going), -1).tolist() for one in (scores, tokens, logs))
            parents = [beam.extend(*of_beam) for beam, *of_beam in zip(going, *each, strict=True)]
            hopeful = [beam.hopeful() for beam in going]
            most = max(hopeful)
            if not most:
                break
            kept = [number for number, count in enumerate(hopeful) if count]
            width = newest.shape[1]
            rows = [number * width + one for number in kept for one in parents[number][:most]]
            rows = np.array(rows, np.int32)
            if len(kept) < len(going):
                going = [going[number] for number in kept]
                searched = {name: array[kept] for name, array in searched.items()}
                source = [one[kept] for one in source]
            for beam in going:
                del beam.hypotheses[most:]
        return [beam.found for beam in beams]

    def _drawn(self, logs, tokens, position, keys):
        """Log P and the id of the token that is drawn, (rows, 1) each: see `Sampling`."""
        drawable = likely(logs, self._options.temperature or 1.0, self._options.top_p)
        places = position * self._vocabulary_size + tokens.astype(np.int64) + 1
        draws = mix(keys[:, None] + GOLDEN * places.astype(np.uint64))
        uniform = ((draws >> 12).astype(np.float64) + 0.5) * 2.0**-52
        noise = -np.log(-np.log(uniform))
        drawn = np.argmax(drawable + noise.astype(np.float32), axis=1)[:, None]
        return np.take_along_axis(logs, drawn, 1), np.take_along_axis(tokens, drawn, 1)


class Manner(NamedTuple):
    """K, what becomes of a hypothesis that ends, how many have ended when a sentence is done, how
    many tokens are given, and alpha and the form of the length penalty.
    """

    beam: int
    form: str
    most: int
    given: int
    alpha: np.float32
    length_penalty_form: str

    def lp(self, length: int | np.ndarray) -> np.ndarray:
        """The length penalty of one length or several, float32."""
        length = np.float32(length)
        base = length if self.length_penalty_form == "length" else (5 + length) / 6
        return np.asarray(base, np.float32) ** self.alpha


class Beam:
    """The hypotheses of a sentence that go on, likeliest first: BOS and the ids of each, log P of
    these, and its sum; and `found`, those that have ended.
    """

    def __init__(self, manner: Manner, limit: int):
        self._manner = manner
        self._longest = manner.lp(limit)
        # Marian's loses one with each hypothesis that ends.
        self._places = manner.beam
        # The score of the last one that is asked for.
        self._last = NEVER
        self.found: list[Hypothesis] = []
        self.hypotheses: list[tuple[list[int], list[float], float]] = [([BOS], [], 0.0)]

    def extend(self, scores: list[float], tokens: list[int], logs: list[float]) -> list[int]:
        """One turn, by the candidates of all hypotheses, equally many of each: their scores, the
        last token and its log P. Gives, for each hypothesis after it, the place of that before.
        """
        beam = self._manner.beam
        before = self.hypotheses
        count = len(scores) // len(before)
        places = self._places
        going = []
        ended = []
        best = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        for place, one in enumerate(best[: 2 * beam]):
            (ended if tokens[one] == EOS else going).append(one)
            if tokens[one] == EOS and place < places and scores[one] > NEVER:
                self._end(before[one // count], scores[one], logs[one])
        alive = min(len(going), self._places)
        # All beams have as many hypotheses.
        chosen = [*going, *ended][:beam]
        self.hypotheses = []
        for place, one in enumerate(chosen):
            ids, of_ids, _ = before[one // count]
            score = scores[one] if place < alive else NEVER
            self.hypotheses.append(([*ids, tokens[one]], [*of_ids, logs[one]], score))
        return [one // count for one in chosen]

    def hopeful(self) -> int:
        """How many hypotheses, from the first on, may still lead to one of the n best: see
        `_settled` of `BeamSearch` and `other_beams`. The paper's search finds nothing else without
        the others.
        """
        form = self._manner.form
        sums = [score for *_, score in self.hypotheses]
        if form == "leaving":
            return sum(bool(np.float32(score) / self._longest > self._last) for score in sums)
        goes_on = sums[0] > NEVER and self._places > 0
        if form in FILLING and self._last > NEVER:
            bound = np.float32(sums[0]) / self._manner.lp(len(self.hypotheses[0][0]) - 1)
            goes_on = goes_on and form == "until_worse" and self._last < bound
        return len(sums) if goes_on else 0

    def _end(self, hypothesis, score, log):
        """Put a hypothesis with an EOS in `found`."""
        ids, logs, _ = hypothesis
        _, form, most, first, *_ = self._manner
        score = float(np.float32(score) / self._manner.lp(len(ids)))
        new = Hypothesis(score, [*ids[1 + first :], EOS], [*logs[first:], log])
        self.found = _best_first([*self.found, new])[: self._manner.beam]
        if len(self.found) >= most:
            self._last = self.found[most - 1].score
        self._places -= form == "shrinking"


class StayingBeam(Beam):
    """A beam in which hypotheses that end stay: see `StayingBeamSearch`."""

    def __init__(self, manner: Manner, limit: int):
        super().__init__(manner, limit)
        self._limit = limit
        # They have their places from the beginning.
        self.hypotheses += [([BOS], [], NEVER)] * (manner.beam - 1)

    def extend(self, scores: list[float], tokens: list[int], logs: list[float]) -> list[int]:
        before = self.hypotheses
        count = len(scores) // len(before)
        at_limit = len(before[0][0]) == self._limit
        for place, (ids, _, score) in enumerate(before):
            if at_limit or _has_ended(ids):
                # What has ended has one extension: itself.
                scores[place * count : (place + 1) * count] = [score] + [NEVER] * (count - 1)
        lengths = np.array([_length(ids) for ids, *_ in before])
        ranks = np.array(scores, np.float32) / np.repeat(self._manner.lp(lengths + 1), count)
        ranks = ranks.tolist()
        best = sorted(range(len(scores)), key=ranks.__getitem__, reverse=True)[: len(before)]
        chosen = range(0, len(scores), count) if at_limit else best
        self.hypotheses = []
        self.found = []
        for place, one in enumerate(chosen):
            ids, of_ids, _ = before[one // count]
            # As in OpenNMT-tf, what has ended has the sum of its new place.
            token, score = (
                (PAD, before[place][2]) if _has_ended(ids) else (tokens[one], scores[one])
            )
            self.hypotheses.append(([*ids, token], [*of_ids, logs[one]], score))
        first = self._manner.given
        for ids, of_ids, score in self.hypotheses:
            if _has_ended(ids) and score > NEVER:
                end = _length(ids)
                rank = float(np.float32(score) / self._manner.lp(end))
                self.found.append(Hypothesis(rank, ids[1 + first : 1 + end], of_ids[first:end]))
        return [one // count for one in chosen]

    def hopeful(self) -> int:
        every = self.hypotheses
        goes_on = any(score > NEVER and not _has_ended(ids) for ids, _, score in every)
        return len(every) if goes_on else 0


def _has_ended(ids):
    return ids[-1] in (EOS, PAD)


def _length(ids):
    """|Y| of the ids behind BOS."""
    return len(ids) - 1 - ids.count(PAD)


def _best_first(found):
    return sorted(found, key=lambda one: -one.score)
