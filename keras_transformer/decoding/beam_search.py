"""Beam search with a length penalty (Vaswani et al. 2017, section 6.1), and a penalty on source
words that no target token attended to (Wu et al. 2016, section 7, eq. 14).
"""

import functools
from numbers import Real

import tensorflow as tf

from keras_transformer.decoding import loop
from keras_transformer.decoding.candidates import best_tokens, log_normalizer
from keras_transformer.decoding.constraints import Constraints
from pipelines.special_ids import BOS, EOS, PAD

MIN_COVERAGE = 1e-10
# The constant c of lp by the name of its form; "length" is Marian's |Y|^alpha.
FORMS = {"paper": 5.0, "length": 0.0}


def length_penalty(
    length: int | tf.Tensor, alpha: float | tf.Tensor, c: float | tf.Tensor = FORMS["paper"]
) -> tf.Tensor:
    """Return lp(Y) = ((c + |Y|) / (c + 1))^alpha; |Y| counts EOS, and the paper's c is 5."""
    return ((c + tf.cast(length, tf.float32)) / (c + 1.0)) ** tf.cast(alpha, tf.float32)


class BeamSearch:
    """Beam search, which ranks finished hypotheses by log P(Y | X) / lp(Y) + cp(X; Y).

    1. Every hypothesis is extended by every token; the 2 K likeliest extensions are candidates.
    2. A candidate among the first K that ends in EOS is finished.
    3. The K best candidates that do not end in EOS stay in the beam.
    4. A sentence is done when no unfinished hypothesis can still become one of the n best. It then
       leaves the batch.

    A beam of 1 is greedy search: a sentence is done when its first hypothesis ends, even if the
    penalty could favour a longer one. It has no coverage penalty.

    K, alpha, n and c of lp may be per-sentence tensors (B,), unvalidated. Shapes are then those of
    the largest K and n, and the hypotheses beyond a sentence's own n score -inf.

    Args:
        beam_size: K, at least 1; the paper's 4.
        length_penalty: alpha, at least 0; the paper's 0.6.
        num_hypotheses: n, the number of translations to return for each sentence, at most K.
        coverage_penalty: beta, at least 0. Above 0, the stepper must return its attention; 0, as
            in the paper, is no penalty.
        constraints: `Constraints` on the tokens; none by default.
        length_penalty_form: a key of `FORMS`, or a tensor of c; the paper's by default.

    Call arguments: see `keras_transformer.decoding`.

    Returns:
        ids, int32 (B, n, L); and log P(Y | X) / lp(Y) + cp(X; Y), float32 (B, n), best first, with
        -inf where fewer than n hypotheses were finished.
    """

    def __init__(
        self,
        beam_size: int | tf.Tensor = 4,
        length_penalty: float | tf.Tensor = 0.6,
        num_hypotheses: int | tf.Tensor = 1,
        coverage_penalty: float = 0.0,
        constraints: Constraints | None = None,
        length_penalty_form: str | tf.Tensor = "paper",
    ):
        _check(beam_size, length_penalty, num_hypotheses)
        if not (isinstance(coverage_penalty, Real) and 0 <= coverage_penalty < float("inf")):
            raise ValueError(
                f"`coverage_penalty` must be at least 0 and finite. Received: {coverage_penalty=}."
            )
        form = length_penalty_form
        if not tf.is_tensor(form) and form not in tuple(FORMS):
            received = f"Received: length_penalty_form={form}."
            raise ValueError(f"`length_penalty_form` must be {' or '.join(FORMS)}. {received}")
        self._settings = {
            "beam_size": beam_size,
            "alpha": length_penalty,
            "n": num_hypotheses,
            "c": form if tf.is_tensor(form) else FORMS[form],
        }
        # Padded with a 1, so that a batch of no sentences has a maximum too.
        self.beam_size, self.num_hypotheses = (
            tf.reduce_max(tf.pad(size, [[0, 1]], constant_values=1)) if tf.is_tensor(size) else size
            for size in (beam_size, num_hypotheses)
        )
        # Finished hypotheses to keep for each sentence.
        self.num_finished = self.beam_size
        self.length_penalty = length_penalty
        self.coverage_penalty = coverage_penalty
        self.constraints = constraints or Constraints()

    def __call__(self, stepper, source, limits, minima=None, prefixes=None, seeds=None):
        sentences = tf.shape(limits)[0]
        width = self.beam_size
        if self.coverage_penalty:
            stepper = Covering(stepper, stepper.is_token(source))

        ids, scores = no_hypotheses(sentences, width)
        scores = tf.where(tf.range(width) == 0, 0.0, scores)
        own = {name: tf.broadcast_to(value, [sentences]) for name, value in self._settings.items()}
        own["beta"] = tf.where(own["beam_size"] == 1, 0.0, self.coverage_penalty)
        n = own["n"]
        preference = self.constraints.preference
        if preference:
            # The preferred hypothesis may be any of the beam.
            own["n"] = tf.where(preference.is_asked, own["beam_size"], n)
        unfinished = {
            **self.constraints.wishes(limits, minima, prefixes),
            **own,
            "sentence": tf.range(sentences),
            "ids": ids,
            "scores": scores,
        }
        finished = no_hypotheses(sentences, self.num_finished)
        ids, scores = loop.run(stepper, source, unfinished, finished, self._extend)
        hypotheses = ids[:, :, 1:], scores
        if preference:
            ordered = functools.partial(_sorted_by_count, *hypotheses, preference.count)
            hypotheses = tf.cond(tf.reduce_any(preference.is_asked), ordered, lambda: hypotheses)
        ids, scores = (part[:, : self.num_hypotheses] for part in hypotheses)
        is_beyond_n = tf.range(self.num_hypotheses) >= n[:, None]
        return (
            tf.where(is_beyond_n[:, :, None], PAD, ids),
            tf.where(is_beyond_n, -float("inf"), scores),
        )

    def _extend(self, logits, state, position, unfinished, finished):
        """One turn of `loop.run`."""
        candidates = self._candidates(unfinished, logits, position)
        coverage = self._coverage(state, unfinished)
        finished = self._finish(candidates, finished, unfinished, position + 1, coverage)
        (ids, scores), parents = self._survivors(candidates, unfinished)
        is_done = self._is_done(scores, tf.gather(finished[1], unfinished["sentence"]), unfinished)
        remaining = tf.cast(tf.where(~is_done)[:, 0], tf.int32)
        return {**unfinished, "ids": ids, "scores": scores}, finished, remaining, parents

    def _candidates(self, unfinished, logits, position):
        """Return the 2 K likeliest extensions in each sentence, best first: ids (b, 2K, t + 1), log
        P (b, 2K), and the number of the hypothesis that each extends, (b, 2K).
        """
        width = self.beam_size
        scores, tokens = self.extensions(unfinished, logits, position)
        sentences, _, count = tf.unstack(tf.shape(scores))
        best, places = tf.math.top_k(tf.reshape(scores, [sentences, width * count]), 2 * width)
        best = first(best, 2 * unfinished["beam_size"])
        ids, parents = extended(unfinished["ids"], tokens, places)
        return ids, best, parents

    def extensions(self, unfinished, logits, position):
        """Return log P and tokens of each hypothesis' best extensions, (b, K, 2K), best first."""
        count = tf.minimum(2 * self.beam_size, logits.shape[-1])
        shape = [tf.shape(logits)[0], self.beam_size, count]
        logits, allowed, forced, may_end = self.constraints(
            logits, unfinished["ids"], position, unfinished
        )
        best, tokens = best_tokens(allowed, count, forced, may_end)
        scores = tf.reshape(best - log_normalizer(logits)[:, None], shape)
        return scores + unfinished["scores"][:, :, None], tf.reshape(tokens, shape)

    def _coverage(self, state, unfinished):
        """Return cp of each hypothesis that was extended, (b, K), or None without a penalty."""
        if not self.coverage_penalty:
            return None
        beta = tf.repeat(unfinished["beta"], self.beam_size)
        return tf.reshape(coverage_penalty(state["coverage"], beta), [-1, self.beam_size])

    def _finish(self, candidates, finished, unfinished, length, coverage):
        """Return all sentences' K best finished hypotheses: ids (B, K, t + 1), scores (B, K)."""
        ids, scores, parents = candidates
        sentence = unfinished["sentence"]
        penalized = scores / self._lp(length, unfinished)
        if coverage is not None:
            penalized += tf.gather(coverage, parents, batch_dims=1)
        penalized = tf.where(
            ids[:, :, -1] == EOS, first(penalized, unfinished["beam_size"]), -float("inf")
        )
        longer = tf.pad(finished[0], [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
        ids = tf.concat([tf.gather(longer, sentence), ids], axis=1)
        scores = tf.concat([tf.gather(finished[1], sentence), penalized], axis=1)
        best, _ = self._best(ids, scores)
        return placed((longer, finished[1]), sentence, best)

    def _survivors(self, candidates, unfinished):
        """Return the K best candidates without EOS, (ids, scores), and their parents, (b, K)."""
        ids, scores, parents = candidates
        scores = tf.where(ids[:, :, -1] == EOS, -float("inf"), scores)
        (ids, scores), chosen = self._best(ids, scores)
        parents = tf.gather(parents, chosen, batch_dims=1)
        return (ids, first(scores, unfinished["beam_size"])), parents

    def _best(self, ids, scores):
        best, chosen = tf.math.top_k(scores, self.beam_size)
        return (tf.gather(ids, chosen, batch_dims=1), best), chosen

    def _lp(self, length, unfinished):
        """Return lp of each sentence, (b, 1), or of each of its lengths, (b, m)."""
        return length_penalty(length, unfinished["alpha"][:, None], unfinished["c"][:, None])

    def _is_done(self, alive_scores, finished_scores, unfinished):
        """Return whether no unfinished hypothesis can change the result any more, booleans (b,).

        As a hypothesis grows, log P only falls, and lp only rises, up to its value at the limit. So
        an unfinished hypothesis can never end above log P / lp(limit); cp is never above 0. Once
        the n-th best finished score is at least that, the result is final. It is also final when
        no hypothesis is left that could go on.
        """
        likeliest = tf.reduce_max(alive_scores, axis=-1, keepdims=True)
        bound = likeliest / self._lp(unfinished["limit"][:, None], unfinished)
        to_beat = self._scores_to_beat(finished_scores, unfinished)
        has_ended = (to_beat > -float("inf")) | (likeliest == -float("inf"))
        is_greedy = unfinished["beam_size"][:, None] == 1
        return tf.reduce_all(tf.where(is_greedy, has_ended, to_beat >= bound), axis=-1)

    def _scores_to_beat(self, finished_scores, unfinished):
        """Return the n-th best finished score of each sentence, (b, 1)."""
        return tf.gather(finished_scores, unfinished["n"][:, None] - 1, batch_dims=1)


def _sorted_by_count(ids, scores, count):
    """Sort hypotheses by a count, the largest first; equal ones keep their order."""
    order = tf.argsort(count(ids), direction="DESCENDING", stable=True)
    return tf.gather(ids, order, batch_dims=1), tf.gather(scores, order, batch_dims=1)


def no_hypotheses(sentences: tf.Tensor, count: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return places for hypotheses: ids (B, count, 1) of BOS, and scores (B, count) of -inf."""
    return tf.fill([sentences, count, 1], BOS), tf.fill([sentences, count], -float("inf"))


def placed(results: tuple, sentence: tf.Tensor, newest: tuple) -> tuple:
    """Replace the ids and scores of the sentences with the numbers `sentence`, (b,)."""
    places = sentence[:, None]
    pairs = zip(results, newest, strict=True)
    return tuple(tf.tensor_scatter_nd_update(part, places, new) for part, new in pairs)


def extended(ids: tf.Tensor, tokens: tf.Tensor, places: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Extend hypotheses, ids (b, K, t), by n of the tokens that may follow them, (b, K, m), chosen
    by `places` (b, n) in (b, K m). Return ids (b, n, t + 1) and the parents' numbers, (b, n).
    """
    parents = places // tf.shape(tokens)[2]
    chosen = tf.gather(tf.reshape(tokens, [tf.shape(tokens)[0], -1]), places, batch_dims=1)
    return tf.concat([tf.gather(ids, parents, batch_dims=1), chosen[:, :, None]], axis=-1), parents


def first(scores: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Set all but the first `count` (b,) of each row's scores (b, m) to -inf."""
    return tf.where(tf.range(tf.shape(scores)[1]) < count[:, None], scores, -float("inf"))


def _check(beam_size, length_penalty, num_hypotheses):
    if not (tf.is_tensor(beam_size) or (isinstance(beam_size, int) and beam_size >= 1)):
        raise ValueError(f"`beam_size` must be an integer, at least 1. Received: {beam_size=}.")
    alpha = length_penalty
    if not tf.is_tensor(alpha) and not (isinstance(alpha, Real) and 0 <= alpha < float("inf")):
        raise ValueError(
            f"`length_penalty` must be at least 0 and finite. Received: {length_penalty=}."
        )
    if tf.is_tensor(beam_size) or tf.is_tensor(num_hypotheses):
        return
    if num_hypotheses not in range(1, beam_size + 1):
        raise ValueError(
            f"`num_hypotheses` must lie in 1..beam_size={beam_size}. Received: {num_hypotheses=}."
        )


class Covering:
    """A stepper that adds up the attention of an inner stepper in its state.

    Its state is a dictionary: "inner", that of the inner stepper, and "coverage", how much each
    source position was attended to, (rows, S). Padding, where `is_token` (B, S) is False, counts as
    covered from the start.
    """

    def __init__(self, stepper, is_token: tf.Tensor):
        self._stepper = stepper
        self._is_token = is_token
        self.growing = {"inner": stepper.growing, "coverage": -1}

    def start(self, rows: int | tf.Tensor) -> dict:
        sentences = tf.maximum(tf.shape(self._is_token)[0], 1)
        covered = tf.repeat(tf.cast(~self._is_token, tf.float32), rows // sentences, axis=0)
        return {"inner": self._stepper.start(rows), "coverage": covered}

    def __call__(self, ids, position, state, source):
        logits, inner, attention = self._stepper(ids, position, state["inner"], source)
        coverage = state["coverage"] + tf.reshape(attention, tf.shape(state["coverage"]))
        return logits, {"inner": inner, "coverage": coverage}, attention


def coverage_penalty(coverage: tf.Tensor, beta: float | tf.Tensor) -> tf.Tensor:
    """Return cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1)), at most 0, of coverages sum_j p_ij,
    (..., S): how much all target tokens attend to source token i.
    """
    return beta * tf.reduce_sum(tf.math.log(tf.clip_by_value(coverage, MIN_COVERAGE, 1.0)), axis=-1)
