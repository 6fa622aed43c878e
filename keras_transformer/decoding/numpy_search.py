"""Section 6.1's decoding (Vaswani et al. 2017) in NumPy, for a model that runs without TensorFlow.
One search serves for a beam, for greedy search, which is a beam of 1 without a penalty, and for
samples, each a beam of 1 whose tokens are drawn. It finds what the searches of TensorFlow find.

Shapes as in `keras_transformer.decoding`; a row is one of b K hypotheses. A model has

    start(rows) -> the state before the first token
    step(ids, position, rows, count, bias, factor, state, source)
        -> logits, tokens, log_normalizer, state

    rows            which rows of the state the hypotheses go on from, integers (b K,)
    bias            added to the logits, float32, broadcastable to (b K, V)
    factor          what positive logits are divided and others multiplied by, likewise
    logits, tokens  of each row the `count` highest after `bias`, (b K, count), best first; of PAD
                    and BOS -inf
    log_normalizer  log sum_v exp z_v before `bias`, (b K,)
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.decoding.options import BEAM_SIZE, LENGTH_PENALTY, DecodingOptions
from pipelines.random_numbers import GOLDEN, mix
from pipelines.special_ids import BOS, EOS, PAD

NEVER = np.float32(-np.inf)
NO_BIAS = np.zeros((1, 1), np.float32)
NO_FACTOR = np.ones((1, 1), np.float32)


class Found(NamedTuple):
    """A finished hypothesis: what it is ranked by, its tokens, EOS the last, and log P of each."""

    score: float
    ids: list[int]
    log_probabilities: list[float]


class NumpySearch:
    """The search that options ask for, with a vocabulary of V."""

    def __init__(self, options: DecodingOptions, vocabulary_size: int):
        self._options = options
        self._vocabulary_size = vocabulary_size
        self._samples = options.samples
        self._beam = 1 if options.samples else options.beam_size or BEAM_SIZE
        alpha = LENGTH_PENALTY if options.length_penalty is None else options.length_penalty
        self._alpha = np.float32(alpha if self._beam > 1 else 0.0)
        self._shrinks = options.beam_form == "shrinking" and self._beam > 1
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
    ) -> list[list[Found]]:
        """The n best of what is found for each of B sentences; arguments as of any search. A
        prefix is a list, and [] where there is none.
        """
        copies = self._samples or 1
        searched = {
            name: np.repeat(array, copies, axis=0)
            for name, array in self._wanted(limits, minima, prefixes).items()
        }
        searched["key"] = self._keys(seeds)
        found = self._run(model, [np.repeat(one, copies, axis=0) for one in source], searched)
        most = self._options.num_hypotheses
        return [
            _best(itertools.chain(*found[start : start + copies]), most)
            for start in range(0, len(found), copies)
        ]

    def _wanted(self, limits, minima, prefixes):
        """What is wished for each sentence, arrays of B rows."""
        lengths = np.array([len(prefix) for prefix in prefixes])
        padded = np.full((len(prefixes), max(lengths, default=0)), PAD)
        for row, prefix in zip(padded, prefixes, strict=True):
            row[: len(prefix)] = prefix
        limits = np.maximum(limits, np.where(lengths > 0, lengths + 1, 0))
        return {"limit": limits, "minimum": np.minimum(minima, limits), "prefix": padded}

    def _keys(self, seeds):
        """What each sample of each sentence draws by."""
        keys = mix(GOLDEN + np.array(seeds, np.int64).astype(np.uint64))
        seed = np.array([1 if self._options.seed is None else self._options.seed])
        keys = mix(keys + GOLDEN * (seed.astype(np.uint64) + 1))
        numbers = np.arange(1, (self._samples or 1) + 1, dtype=np.uint64)
        return mix(keys[:, None] + GOLDEN * numbers).reshape(-1)

    def _run(self, model, source, searched):
        """What is found for each row of `searched`, a beam each."""
        sentences = len(searched["limit"])
        beam = self._beam
        scores = np.where(np.arange(beam) == 0, np.float32(0), NEVER)
        searched |= {
            "sentence": np.arange(sentences),
            "places": np.full(sentences, beam),
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
            bias, factor = self._rules(searched, position)
            newest = searched["ids"][:, :, -1]
            place = np.array(position, np.int32)
            logits, tokens, normalizer, state = model.step(
                newest, place, rows, self._count, bias, factor, state, source
            )
            if self._samples:
                logits, tokens = self._drawn(logits, tokens, position, searched["key"])
            logs = logits - normalizer[:, None]
            searched, parents, goes_on = self._extended(searched, logs, tokens, found)
            rows = (parents + beam * np.arange(len(parents))[:, None])[goes_on]
            rows = rows.reshape(-1).astype(np.int32)
            if not goes_on.all():
                searched = {name: array[goes_on] for name, array in searched.items()}
                source = [one[goes_on] for one in source]
            position += 1
        return found

    def _extended(self, searched, logs, tokens, found):
        """One turn: the beam after it, the hypotheses that it extends (b, K), and which sentences
        are not done, (b,). What ends is put in `found`.
        """
        sentences, beam = searched["scores"].shape
        count = logs.shape[1]
        scores = searched["scores"][:, :, None] + logs.reshape(sentences, beam, count)
        order = _descending(scores.reshape(sentences, -1), 2 * beam)
        scores = _take(scores.reshape(sentences, -1), order)
        newest = _take(tokens.reshape(sentences, -1), order)
        logs = _take(logs.reshape(sentences, -1), order)
        in_beam = np.arange(order.shape[1]) < searched["places"][:, None]
        if self._shrinks:
            scores = np.where(in_beam, scores, NEVER)
        ended = (newest == EOS) & in_beam & (scores > NEVER)
        parents = order // count
        for row, column in zip(*np.nonzero(ended), strict=True):
            parent = parents[row, column]
            self._finish(
                found[searched["sentence"][row]],
                scores[row, column],
                [*searched["ids"][row, parent, 1:].tolist(), EOS],
                [*searched["logs"][row, parent].tolist(), float(logs[row, column])],
            )
        places = searched["places"] - ended.sum(axis=1) * self._shrinks
        alive = np.where(newest == EOS, NEVER, scores)
        chosen = _descending(alive, beam)
        parents = _take(parents, chosen)
        alive = np.where(np.arange(beam) < places[:, None], _take(alive, chosen), NEVER)
        searched = {
            **searched,
            "places": places,
            "scores": alive,
            "ids": _longer(searched["ids"], parents, _take(newest, chosen)),
            "logs": _longer(searched["logs"], parents, _take(logs, chosen)),
        }
        return searched, parents, ~self._settled(searched, found)

    def _finish(self, found, score, ids, logs):
        found[:] = _best([*found, Found(float(score / self._lp(len(ids))), ids, logs)], self._beam)

    def _lp(self, length):
        """The length penalty of one length or several, float32."""
        length = np.float32(length)
        base = length if self._options.length_penalty_form == "length" else (5 + length) / 6
        return np.asarray(base, np.float32) ** self._alpha

    def _settled(self, searched, found):
        """Which sentences are done, (b,): see `BeamSearch._settled`."""
        likeliest = searched["scores"].max(axis=1)
        if self._shrinks:
            return (searched["places"] == 0) | (likeliest == NEVER)
        most = self._options.num_hypotheses if self._beam > 1 else 1
        of_each = [found[sentence] for sentence in searched["sentence"]]
        last = np.array([one[most - 1].score if len(one) >= most else NEVER for one in of_each])
        if self._beam == 1:
            return (last > NEVER) | (likeliest == NEVER)
        return last >= likeliest / self._lp(searched["limit"])

    def _rules(self, searched, position):
        """What `Constraints` do, as the bias and the factor of a step."""
        came = searched["ids"][:, :, 1:]
        rows = came.reshape(came.shape[0] * came.shape[1], position)
        size = (len(rows), self._vocabulary_size)
        factor = NO_FACTOR
        if self._options.repetition_penalty != 1.0 and position:
            factor = np.ones(size, np.float32)
            np.put_along_axis(factor, rows, np.float32(self._options.repetition_penalty), axis=1)
        forced = np.where(searched["limit"] == position + 1, EOS, PAD)
        prefix = searched["prefix"]
        if position < prefix.shape[1]:
            forced = np.where(prefix[:, position] != PAD, prefix[:, position], forced)
        too_short = position + 1 < searched["minimum"]
        n = self._options.no_repeat_ngram_size
        if not (n or self._options.barred or forced.any() or too_short.any()):
            return NO_BIAS, factor
        forced = np.repeat(forced, self._beam)
        too_short = np.repeat(too_short, self._beam)
        bias = np.zeros(size, np.float32)
        bias[:, list(self._options.barred)] = NEVER
        bias[too_short, EOS] = NEVER
        for row, ids in enumerate(rows.tolist() if n else ()):
            bias[row, _repeating(ids, n)] = NEVER
        is_forced = forced != PAD
        bias[is_forced] = NEVER
        bias[is_forced, forced[is_forced]] = 0
        return bias, factor

    def _drawn(self, logits, tokens, position, keys):
        """The logit and the id of the token that is drawn, (rows, 1) each: see `Sampling`."""
        options = self._options
        temperature = np.float32(options.temperature or 1.0)
        drawable = (logits - logits[:, :1]) / temperature
        if options.top_p is not None and options.top_p < 1:
            shares = np.exp(drawable)
            held = np.cumsum(shares, axis=1) - shares
            counts = held < np.float32(options.top_p) * shares.sum(axis=1, keepdims=True)
            counts[:, 0] = True
            drawable = np.where(counts, drawable, NEVER)
        places = position * self._vocabulary_size + tokens.astype(np.int64) + 1
        draws = mix(keys[:, None] + GOLDEN * places.astype(np.uint64))
        uniform = ((draws >> 12).astype(np.float64) + 0.5) * 2.0**-52
        noise = -np.log(-np.log(uniform))
        drawn = np.argmax(drawable + noise.astype(np.float32), axis=1)[:, None]
        return _take(logits, drawn), _take(tokens, drawn)


def _repeating(ids, n):
    """The tokens that came after an earlier occurrence of the last n - 1."""
    context = ids[len(ids) - n + 1 :]
    starts = range(max(len(ids) - n + 1, 0))
    return [ids[start + n - 1] for start in starts if ids[start : start + n - 1] == context]


def _descending(scores, count):
    """Where the highest are, (b, count), of equal ones the first before the others."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


def _take(array, places):
    return array[np.arange(len(array))[:, None], places]


def _longer(came, parents, newest):
    """What came of hypotheses (b, K, t), and one more of each, (b, K)."""
    return np.concatenate([_take(came, parents), newest[:, :, None]], axis=2)


def _best(found, count):
    return sorted(found, key=lambda one: -one.score)[:count]
