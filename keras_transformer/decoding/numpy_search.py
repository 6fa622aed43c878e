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

import functools
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
        self._beam = 1 if options.samples else beam
        self._alpha = np.float32(alpha if self._beam > 1 else 0.0)
        self._form = options.beam_form if self._beam > 1 else "leaving"
        # How many must have ended before a sentence is done.
        most = self._beam if self._form in FILLING else options.num_hypotheses
        self._most = min(most, self._beam)
        count = (options.top_k or vocabulary_size) if self._samples else 2 * self._beam
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
        in_order = list if self._form == "staying" else functools.partial(_best, count=None)
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
        sentences = len(searched["limit"])
        # Those of a beam that stay have their places from the beginning.
        beam = self._beam if self._form == "staying" else 1
        scores = np.where(np.arange(beam) == 0, np.float32(0), NEVER)
        searched |= {
            "sentence": np.arange(sentences),
            "places": np.full(sentences, self._beam),
            # The score of the last one that is asked for.
            "last": np.full(sentences, NEVER),
            "longest": self._lp(searched["limit"]),
            "ids": np.full((sentences, beam, 1), BOS, np.int32),
            "scores": np.tile(scores, (sentences, 1)),
            "logs": np.zeros((sentences, beam, 0), np.float32),
        }
        found = [[] for _ in range(sentences)]
        state = model.start(sentences * beam)
        rows = np.arange(sentences * beam, dtype=np.int32)
        longest = max(searched["limit"], default=0)
        position = 0
        while len(searched["sentence"]) and position < longest:
            bias, factor = rules(searched, position)
            newest = searched["ids"][:, :, -1]
            place = np.array(position, np.int32)
            logs, tokens, state = model.step(
                newest, place, rows, self._count, bias, factor, state, source
            )
            if self._samples:
                logs, tokens = self._drawn(logs, tokens, position, searched["key"])
            costs = rules.costs(logs, searched, position)
            extended = self._stayed if self._form == "staying" else self._extended
            searched, parents = extended(searched, costs, logs, tokens, found)
            hopeful = self._hopeful(searched)
            if np.count_nonzero(hopeful) < hopeful.size:
                goes_on = hopeful.any(axis=1)
                searched = {name: array[goes_on] for name, array in searched.items()}
                source = [one[goes_on] for one in source]
                # The last places in the beams of all.
                kept = hopeful.any(axis=0)
                for name in ("scores", "ids", "logs"):
                    searched[name] = searched[name][:, kept]
                parents = parents[goes_on][:, kept]
            rows = parents.reshape(-1).astype(np.int32)
            position += 1
        return found

    def _extended(self, searched, costs, logs, tokens, found):
        """One turn: the beam after it, and the rows that it extends. `found` gets what ends."""
        sentences, width = searched["scores"].shape
        count = logs.shape[1]
        # Places in all rows: `take` by them takes a third of the time of two indices.
        each = np.arange(sentences)[:, None]
        scores = searched["scores"].reshape(-1, 1) + costs
        order = _descending(scores.reshape(sentences, -1), 2 * self._beam)
        order += each * (width * count)
        scores, newest, logs = (one.take(order) for one in (scores, tokens, logs))
        parents = order // count
        came = _came(searched)
        self._bar(scores, searched)
        is_end = newest == EOS
        kept = parents, scores, newest, logs
        if np.count_nonzero(is_end):
            self._end(is_end, searched, scores, came, parents, logs, found)
            scores[is_end] = NEVER
            order = is_end.argsort(axis=1, kind="stable") + each * order.shape[1]
            kept = (one.take(order) for one in kept)
        parents, scores, newest, logs = (one[:, : self._beam] for one in kept)
        self._bar(scores, searched)
        ids, logs = map(_longer, came, (parents, parents), (newest, logs))
        return {**searched, "scores": scores, "ids": ids, "logs": logs}, parents

    def _stayed(self, searched, costs, logs, tokens, found):
        """`_extended` where a hypothesis that ends stays in the beam: see `StayingBeamSearch`."""
        sums = searched["scores"]
        sentences, beam = sums.shape
        count = logs.shape[1]
        lengths, ended = _lengths(searched["ids"])
        at_limit = searched["limit"][:, None] == searched["ids"].shape[2]
        # What has ended has one extension: itself.
        itself = np.where(np.arange(count), NEVER, np.float32(0))
        costs = costs.reshape(sentences, beam, count)
        scores = sums[:, :, None] + np.where((ended | at_limit)[:, :, None], itself, costs)
        newest = np.where(ended[:, :, None], PAD, tokens.reshape(scores.shape))
        ranks = scores / self._lp(lengths + 1)[:, :, None]
        order = _descending(ranks.reshape(sentences, -1), beam)
        order = np.where(at_limit, np.arange(beam) * count, order)
        order += np.arange(sentences)[:, None] * (beam * count)
        parents = order // count
        # As in OpenNMT-tf, what has ended has the sum of its new place.
        sums = np.where(ended.take(parents), sums, scores.take(order))
        both = newest.take(order), logs.take(order)
        ids, logs = map(_longer, _came(searched), (parents, parents), both)
        lengths, ended = _lengths(ids)
        first = self._given
        results = np.where(ended, sums / self._lp(lengths), NEVER)
        for row, sentence in enumerate(searched["sentence"]):
            found[sentence] = [
                Hypothesis(score, one[1 + first : 1 + end].tolist(), log[first:end].tolist())
                for score, one, log, end in zip(
                    results[row].tolist(), ids[row], logs[row], lengths[row], strict=True
                )
                if score > NEVER
            ]
        return {**searched, "scores": sums, "ids": ids, "logs": logs}, parents

    def _bar(self, scores, searched):
        """In a beam that shrinks only its first places go on."""
        if self._form == "shrinking":
            scores[np.arange(scores.shape[1]) >= searched["places"][:, None]] = NEVER

    def _end(self, is_end, searched, scores, came, parents, logs, found):
        """Put the candidates that end in the beam in `found`."""
        ended = is_end & (scores > NEVER)
        ended[:, self._beam :] = False
        for row, column in zip(*np.nonzero(ended), strict=True):
            ids, of_ids = (one[parents[row, column]].tolist() for one in came)
            ids = [*ids[1:], EOS]
            of_ids.append(float(logs[row, column]))
            score = float(scores[row, column] / self._lp(len(ids)))
            new = Hypothesis(score, ids[self._given :], of_ids[self._given :])
            one = found[searched["sentence"][row]]
            one[:] = _best([*one, new], self._beam)
            if len(one) >= self._most:
                searched["last"][row] = one[self._most - 1].score
        searched["places"] -= ended.sum(axis=1) * (self._form == "shrinking")

    def _lp(self, length):
        """The length penalty of one length or several, float32."""
        length = np.float32(length)
        base = length if self._options.length_penalty_form == "length" else (5 + length) / 6
        return np.asarray(base, np.float32) ** self._alpha

    def _hopeful(self, searched):
        """Which hypotheses may still lead to one of the n best, (b, K): see `_settled` of
        `BeamSearch` and `other_beams`. The paper's search finds nothing else without the others.
        """
        scores = searched["scores"]
        last = searched["last"]
        likeliest = scores[:, 0]
        if self._form == "leaving":
            return scores / searched["longest"][:, None] > last[:, None]
        goes_on = likeliest > NEVER
        if self._form == "shrinking":
            goes_on &= searched["places"] > 0
        elif self._form == "staying":
            goes_on = ~(_lengths(searched["ids"])[1] | (scores == NEVER)).all(axis=1)
        else:
            bound = likeliest / self._lp(searched["ids"].shape[2] - 1)
            is_worse = (self._form == "until_full") | (last >= bound)
            goes_on &= (last == NEVER) | ~is_worse
        return np.broadcast_to(goes_on[:, None], scores.shape)

    def _drawn(self, logs, tokens, position, keys):
        """Log P and the id of the token that is drawn, (rows, 1) each: see `Sampling`."""
        drawable = likely(logs, self._options.temperature or 1.0, self._options.top_p)
        places = position * self._vocabulary_size + tokens.astype(np.int64) + 1
        draws = mix(keys[:, None] + GOLDEN * places.astype(np.uint64))
        uniform = ((draws >> 12).astype(np.float64) + 0.5) * 2.0**-52
        noise = -np.log(-np.log(uniform))
        drawn = np.argmax(drawable + noise.astype(np.float32), axis=1)[:, None]
        return np.take_along_axis(logs, drawn, 1), np.take_along_axis(tokens, drawn, 1)


def _descending(scores, count):
    """Where the highest are, (b, count), of equal ones the first before the others."""
    return (-scores).argsort(axis=1, kind="stable")[:, :count]


def _came(searched):
    """The tokens of each row, and log P of those behind BOS."""
    return [searched[name].reshape(searched["scores"].size, -1) for name in ("ids", "logs")]


def _longer(came, rows, newest):
    """What came of the rows that hypotheses (b, K) extend, and one more of each."""
    return np.concatenate([came.take(rows, axis=0), newest[:, :, None]], axis=2)


def _lengths(ids):
    """|Y| of hypotheses, (b, K), and which of them have ended."""
    return (ids[:, :, 1:] != PAD).sum(axis=2), (ids[:, :, -1] == EOS) | (ids[:, :, -1] == PAD)


def _best(found, count):
    return sorted(found, key=lambda one: -one.score)[:count]
