"""Decoding by brute force (Vaswani et al. 2017, section 6.1): every sequence with its score, and
beam search one sentence at a time.

Plain Python and NumPy, with the rules on tokens that a user may ask for. A "model" here is
`log_probabilities(prefixes) -> (prefixes, V)`: what may follow each prefix, BOS left out.
"""

import dataclasses

import numpy as np

PAD, UNK, BOS, EOS = range(4)
ATOL = 1e-5  # log P near 0 is the float32 difference of two numbers near 16
GOLDEN, FIRST, SECOND = (
    np.array([number], np.uint64)
    for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


class Table:
    """An autoregressive model drawn from a seed: its logits depend on the whole prefix.

    Args:
        seed: of everything.
        words: number of ids beyond the special ones; V = 4 + words. UNK is a word as well.
        levels: number of different logits; few make many ties. None: as many as float32 holds.
    """

    def __init__(self, seed, words, levels=None):
        self.seed = seed
        self.size = 4 + words
        self.levels = levels

    def logits(self, prefixes):
        """float32 (prefixes, V), of integers (prefixes, t)."""
        prefixes = np.asarray(prefixes, np.uint64)
        state = np.full(len(prefixes), self.seed, np.uint64)
        for column in prefixes.T:
            state = _mix(state, column)
        bits = _mix(state[:, None], np.arange(self.size, dtype=np.uint64))
        uniform = (bits >> np.uint64(11)) * 2.0**-53
        return np.float32(16 * uniform if self.levels is None else np.floor(uniform * self.levels))

    def log_probabilities(self, prefixes):
        """float64 (prefixes, V), of a list of tuples of one length."""
        logits = self.logits(np.array(prefixes, np.uint64).reshape(len(prefixes), -1)).astype(
            np.float64
        )
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))

    def score(self, ids, alpha):
        """Log P(ids) / lp(|ids|), EOS counted."""
        return sum(
            self.log_probabilities([ids[:t]])[0, token] for t, token in enumerate(ids)
        ) / length_penalty(len(ids), alpha)


def _mix(state, value):
    """A new number of 64 random bits for each pair (splitmix64)."""
    bits = state + GOLDEN * (value + np.uint64(1))
    bits = (bits ^ (bits >> np.uint64(30))) * FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * SECOND
    return bits ^ (bits >> np.uint64(31))


def length_penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


@dataclasses.dataclass(frozen=True)
class Rules:
    """What a sequence of at most `limit` tokens must keep, besides ending in EOS. By default
    nothing.

    Args:
        minimum: fewest tokens, EOS among them, where the limit lets it.
        prefix: tokens to begin with, whatever the other rules say.
        ngram: no so many tokens in a row come twice; 0: any may.
    """

    minimum: int = 1
    prefix: tuple = ()
    ngram: int = 0

    def grown(self, limit):
        """The limit that leaves room for the prefix and EOS."""
        return max(limit, len(self.prefix) + 1) if self.prefix else limit

    def allow(self, ids, token, limit):
        """Whether `token` may come after `ids`; of a grown limit."""
        if len(ids) < len(self.prefix):
            return token == self.prefix[len(ids)]
        if len(ids) + 1 == limit:
            return token == EOS
        if token == EOS:
            return len(ids) + 1 >= self.minimum
        return token not in (PAD, BOS) and not (self.ngram and self._repeats((*ids, token)))

    def _repeats(self, ids):
        ngrams = [ids[start : start + self.ngram] for start in range(len(ids) - self.ngram + 1)]
        return len(ngrams) > 0 and ngrams[-1] in ngrams[:-1]


FREE = Rules()


def likeliest(table, limit, rules=FREE):
    """The likeliest token that may come, until EOS; and log P. Nothing where no token may come."""
    ids, total, limit = (), 0.0, rules.grown(limit)
    while EOS not in ids:
        row = table.log_probabilities([ids])[0]
        possible = [token for token in range(table.size) if rules.allow(ids, token, limit)]
        if not possible:
            return []
        ids += (max(possible, key=lambda token: row[token]),)
        total += row[ids[-1]]
    return [(ids, total)]


def distribution(logits, temperature=1.0, top_k=0, top_p=1.0):
    """P of each token: the fewest that hold top_p, of the top_k likeliest."""
    logits = logits.astype(np.float64) / temperature
    logits[[PAD, BOS]] = -np.inf
    likely = np.exp(logits - logits.max())
    order = np.argsort(-likely, kind="stable")
    likely[order[top_k or len(order) :]] = 0
    held = np.cumsum(likely[order]) / likely.sum()
    likely[order[np.searchsorted(held, top_p - 1e-9) + 1 :]] = 0
    return likely / likely.sum()


def every_sequence(log_probabilities, limit, rules=FREE):
    """All (ids, log P) that end in EOS before `limit` tokens, or are made to end there, and keep
    the rules.
    """
    complete, unfinished, limit = [], [((), 0.0)], rules.grown(limit)
    while unfinished:
        rows = log_probabilities([ids for ids, _ in unfinished]).tolist()
        extended = _extensions(unfinished, rows, limit, rules)
        complete += [extension for extension in extended if extension[0][-1] == EOS]
        unfinished = [extension for extension in extended if extension[0][-1] != EOS]
    return complete


def _extensions(hypotheses, rows, limit, rules):
    return [
        ((*ids, token), score + row[token])
        for (ids, score), row in zip(hypotheses, rows, strict=True)
        for token in range(len(row))
        if rules.allow(ids, token, limit)
    ]


def n_best(log_probabilities, limit, alpha, n, rules=FREE):
    """The n best (ids, log P / lp) of all sequences that keep the rules, best first."""
    scored = [
        (ids, score / length_penalty(len(ids), alpha))
        for ids, score in every_sequence(log_probabilities, limit, rules)
    ]
    return sorted(scored, key=_descending)[:n]


def beam_search(log_probabilities, limit, beam_size, alpha, n=1, rules=FREE):
    """The rules of `keras_transformer.decoding.beam_search`, for one sentence; of equal scores the
    earlier wins.
    """
    alive, finished, limit = [((), 0.0)], [], rules.grown(limit)
    for length in range(1, limit + 1):
        rows = log_probabilities([ids for ids, _ in alive]).tolist()
        candidates = sorted(_extensions(alive, rows, limit, rules), key=_descending)[
            : 2 * beam_size
        ]  # rule 1
        ended = [
            (ids, score / length_penalty(length, alpha))
            for ids, score in candidates[:beam_size]
            if ids[-1] == EOS
        ]  # rule 2
        finished = sorted(finished + ended, key=_descending)[:beam_size]
        alive = [(ids, score) for ids, score in candidates if ids[-1] != EOS][:beam_size]  # rule 3
        if not alive or (beam_size == 1 and finished):  # rule 4
            break
        if len(finished) >= n and finished[n - 1][1] >= alive[0][1] / length_penalty(limit, alpha):
            break
    return finished[:n]


def _descending(scored):
    return -scored[1]


class TableStepper:
    """A stepper as `keras_transformer.decoding` wants it, one table a sentence, whose state is the
    prefix itself.

    So a hypothesis whose state belongs to another one gets the other's logits. The source is the
    number of a sentence's table.
    """

    def __init__(self, tables):
        self.tables = tables
        self.growing = {"keys": 2, "values": 2}

    def start(self, rows):
        return {
            "keys": np.zeros((rows, 2, 0, 1), np.int32),
            "values": np.zeros((rows, 1, 0, 3), np.int32),
        }

    def __call__(self, ids, position, state, source):
        ids, keys, values = np.asarray(ids), np.asarray(state["keys"]), np.asarray(state["values"])
        newest = ids.reshape(-1, 1, 1, 1)
        keys = np.concatenate([keys, np.tile(newest, (1, 2, 1, 1))], axis=2)
        values = np.concatenate([values, np.tile(-newest, (1, 1, 1, 3))], axis=2)
        assert keys.shape[2] == int(position) + 1
        assert (keys[:, 0] == -values[:, 0, :, :1]).all(), "the two halves of the state came apart"
        prefixes = keys[:, 0, 1:, 0].reshape(*ids.shape, -1)
        logits = np.stack(
            [
                table.logits(rows)
                for table, rows in zip([self.tables[n] for n in source], prefixes, strict=True)
            ]
        )
        return logits, {"keys": keys, "values": values}, None


class Stateless:
    """A stepper of a function (ids, position, source) -> logits."""

    growing = ()

    def __init__(self, logits_of):
        self.logits_of = logits_of

    def start(self, rows):
        return ()

    def __call__(self, ids, position, state, source):
        return self.logits_of(ids, position, source), state, None


def random_model(size):
    """A stepper whose logits depend on the sentence, the newest token and the position."""
    import tensorflow as tf

    rows = tf.constant(np.random.default_rng(0).normal(0, 3, (997, size)), tf.float32)

    def logits(ids, position, source):
        return tf.gather(rows, (source[:, None] * 101 + ids * 31 + position * 17) % 997)

    return Stateless(logits)


def decode(search, tables, limits, minima=None, prefixes=None, stepper=None, **more):
    """Run a search of `keras_transformer.decoding` on tables: for each sentence, (ids, score) best
    first, unfinished ones left out.

    `prefixes` are tuples of any lengths; `more` goes to the search as it is.
    """
    source = np.arange(len(tables), dtype=np.int32)
    more |= {} if minima is None else {"minima": np.array(minima, np.int32)}
    more |= {} if prefixes is None else {"prefixes": padded(prefixes)}
    stepper = stepper or TableStepper(tables)
    ids, scores = search(stepper, source, np.array(limits, np.int32), **more)
    sentences = list(zip(ids.numpy(), scores.numpy().tolist(), strict=True))
    assert not any(
        row.any()
        for sentence in sentences
        for row, score in zip(*sentence, strict=True)
        if score == -np.inf
    )
    return [
        [(_closed(row), score) for row, score in zip(*sentence, strict=True) if score > -np.inf]
        for sentence in sentences
    ]


def assert_n_best(actual, everything, n):
    """The n best of all (ids, score), with the scores of their ids. Where scores are equal any of
    their sequences will do.
    """
    score_of = dict(everything)
    scores = [score for _, score in actual]
    assert len({ids for ids, _ in actual}) == len(actual) == min(n, len(everything))
    for expected in (everything[:n], [(ids, score_of[ids]) for ids, _ in actual]):
        expected_scores = [score for _, score in expected]
        np.testing.assert_allclose(scores, expected_scores, rtol=1e-5, atol=ATOL)


def padded(prefixes):
    """int32 (B, P) of tuples, filled with PAD."""
    width = max(map(len, prefixes), default=0)
    return np.array(
        [[*prefix, *[PAD] * (width - len(prefix))] for prefix in prefixes], np.int32
    ).reshape(len(prefixes), width)


def _closed(row):
    """The ids up to EOS; after it there may only be PAD."""
    ids = row.tolist()
    length = ids.index(EOS) + 1 if EOS in ids else 0
    assert not any(ids[length:]), ids
    return tuple(ids[:length])


def assert_lists_equal(actual, expected, rtol=1e-5):
    """The same (ids, score), best first."""
    assert [ids for ids, _ in actual] == [ids for ids, _ in expected]
    scores, expected_scores = ([score for _, score in pairs] for pairs in (actual, expected))
    np.testing.assert_allclose(scores, expected_scores, rtol=rtol, atol=ATOL)
