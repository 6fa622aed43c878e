"""Beam search with a length penalty (Vaswani et al. 2017, section 6.1), and a penalty on source
words that no target token attended to (Wu et al. 2016, section 7, eq. 14).
"""

import functools

import tensorflow as tf

from keras_transformer.decoding import loop
from keras_transformer.decoding.candidates import best_tokens, log_normalizer
from keras_transformer.decoding.constraints import Constraints
from pipelines.special_ids import BOS, EOS, PAD

LEAST = 1e-10
# c of lp by the name of its form: the paper's, and Marian's |Y|^alpha.
FORMS = {"paper": 5.0, "length": 0.0}


def length_penalty(
    length: int | tf.Tensor, alpha: float | tf.Tensor, c: float | tf.Tensor = FORMS["paper"]
) -> tf.Tensor:
    """lp(Y) = ((c + |Y|) / (c + 1))^alpha; |Y| counts the EOS too, and the paper's c is 5."""
    return ((c + tf.cast(length, tf.float32)) / (c + 1.0)) ** tf.cast(alpha, tf.float32)


class BeamSearch:
    """Keeps the K likeliest unfinished hypotheses, and the best finished ones by log P(Y | X) /
    lp(Y) + cp(X; Y).

    1. Every hypothesis is extended by every token; the 2 K best extensions are the candidates.
    2. A candidate among the first K that ends in EOS is finished.
    3. The K best candidates that do not end in EOS go on.
    4. A sentence is done when no unfinished hypothesis can still come among the n best. It leaves
       the batch: from then on only the others cost anything.

    A beam of 1 is greedy search: a sentence is done when its first hypothesis ends, even if the
    penalty could favour a longer one.

    K, alpha, n and c of lp may be per-sentence tensors (B,), unvalidated. Shapes are then those of
    the largest K and n, and the hypotheses beyond a sentence's own n score -inf.

    Args:
        beam_size: K, at least 1; the paper's 4.
        length_penalty: alpha, at least 0; the paper's 0.6.
        num_hypotheses: n, how many translations to return for each sentence, at most K.
        coverage_penalty: beta, at least 0. Above 0, the stepper must give its attention; 0, as in
            the paper, is no penalty.
        constraints: `Constraints` on the tokens; none by default.
        length_penalty_form: form of lp, a key of `FORMS`, or c itself; the paper's by default.

    Call arguments: see `keras_transformer.decoding`.

    Returns:
        ids, int32 (B, n, L); and log P(Y | X) / lp(Y) + cp(X; Y), float32 (B, n), best first, with
        -inf in place of hypotheses that were not finished.
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
        if not tf.is_tensor(beam_size):
            _check(beam_size, length_penalty, num_hypotheses)
        if not 0 <= coverage_penalty < float("inf"):
            raise ValueError(
                f"`coverage_penalty` must be at least 0 and finite. Received: {coverage_penalty=}."
            )
        form = length_penalty_form
        c = form if tf.is_tensor(form) else FORMS[form]
        self._own = {"beam_size": beam_size, "alpha": length_penalty, "n": num_hypotheses, "c": c}
        # Padded with a 1, so that a batch of no sentences has a maximum too.
        self.beam_size, self.num_hypotheses = (
            tf.reduce_max(tf.pad(size, [[0, 1]], constant_values=1)) if tf.is_tensor(size) else size
            for size in (beam_size, num_hypotheses)
        )
        # How many finished hypotheses are kept.
        self.kept = self.beam_size
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
        own = {name: tf.broadcast_to(value, [sentences]) for name, value in self._own.items()}
        asked_for = own["n"]
        preference = self.constraints.preference
        if preference:
            # The best score is not enough: the whole beam must be known.
            own["n"] = tf.where(preference.is_asked, own["beam_size"], asked_for)
        searched = {
            **self.constraints.wishes(limits, minima, prefixes),
            **own,
            "sentence": tf.range(sentences),
            "ids": ids,
            "scores": scores,
        }
        finished = no_hypotheses(sentences, self.kept)
        ids, scores = loop.run(stepper, source, searched, finished, self._extend)
        found = ids[:, :, 1:], scores
        if preference:
            ordered = functools.partial(_most_first, *found, preference.count)
            found = tf.cond(tf.reduce_any(preference.is_asked), ordered, lambda: found)
        ids, scores = (one[:, : self.num_hypotheses] for one in found)
        not_its_own = tf.range(self.num_hypotheses) >= asked_for[:, None]
        return (
            tf.where(not_its_own[:, :, None], PAD, ids),
            tf.where(not_its_own, -float("inf"), scores),
        )

    def _extend(self, logits, state, position, searched, found):
        """One turn of `loop.run`."""
        candidates = self._candidates(searched, logits, position)
        found = self._finish(candidates, found, searched, position + 1, self._coverage(state))
        (ids, scores), parents = self._survivors(candidates, searched)
        done = self._settled(scores, tf.gather(found[1], searched["sentence"]), searched)
        going_on = tf.cast(tf.where(~done)[:, 0], tf.int32)
        return {**searched, "ids": ids, "scores": scores}, found, going_on, parents

    def _candidates(self, searched, logits, position):
        """The 2 K best extensions of each sentence, best first: ids (b, 2K, t + 1), log P (b, 2K),
        and the hypotheses that they extend, (b, 2K).
        """
        width = self.beam_size
        scores, tokens = self.extensions(searched, logits, position)
        sentences, _, count = tf.unstack(tf.shape(scores))
        best, places = tf.math.top_k(tf.reshape(scores, [sentences, width * count]), 2 * width)
        best = first(best, 2 * searched["beam_size"])
        ids, parents = extended(searched["ids"], tokens, places)
        return ids, best, parents

    def extensions(self, searched, logits, position):
        """The 2 K best extensions of each hypothesis: log P and tokens, (b, K, 2K), best first."""
        count = tf.minimum(2 * self.beam_size, logits.shape[-1])
        shape = [tf.shape(logits)[0], self.beam_size, count]
        logits, allowed, forced, may_end = self.constraints(
            logits, searched["ids"], position, searched
        )
        best, tokens = best_tokens(allowed, count, forced, may_end)
        scores = tf.reshape(best - log_normalizer(logits)[:, None], shape)
        return scores + searched["scores"][:, :, None], tf.reshape(tokens, shape)

    def _coverage(self, state):
        """Cp of each hypothesis that was extended, (b, K), or None without such a penalty."""
        if not self.coverage_penalty:
            return None
        penalties = coverage_penalty(state["coverage"], self.coverage_penalty)
        return tf.reshape(penalties, [-1, self.beam_size])

    def _finish(self, candidates, finished, searched, length, coverage):
        """The K best finished hypotheses of all sentences: ids (B, K, t + 1) and scores (B, K)."""
        ids, scores, parents = candidates
        sentence = searched["sentence"]
        penalized = scores / self._lp(length, searched)
        if coverage is not None:
            penalized += tf.gather(coverage, parents, batch_dims=1)
        penalized = tf.where(
            ids[:, :, -1] == EOS, first(penalized, searched["beam_size"]), -float("inf")
        )
        longer = tf.pad(finished[0], [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
        before = tf.gather(longer, sentence)
        scores_before = tf.gather(finished[1], sentence)
        best, _ = self._best(
            tf.concat([before, ids], axis=1), tf.concat([scores_before, penalized], axis=1)
        )
        return placed((longer, finished[1]), sentence, best)

    def _survivors(self, candidates, searched):
        """The K best candidates that do not end, (ids, scores), and what they extend, (b, K)."""
        ids, scores, parents = candidates
        (ids, scores), chosen = self._best(
            ids, tf.where(ids[:, :, -1] == EOS, -float("inf"), scores)
        )
        parents = tf.gather(parents, chosen, batch_dims=1)
        return (ids, first(scores, searched["beam_size"])), parents

    def _best(self, ids, scores):
        best, chosen = tf.math.top_k(scores, self.beam_size)
        return (tf.gather(ids, chosen, batch_dims=1), best), chosen

    def _lp(self, length, searched):
        """Of each sentence, (b, 1), or of each length (b, m)."""
        return length_penalty(length, searched["alpha"][:, None], searched["c"][:, None])

    def _settled(self, alive_scores, finished_scores, searched):
        """Whether no unfinished hypothesis can change the answer any more: booleans (b,).

        As a hypothesis grows, log P only falls, and lp only rises, up to its value at the limit. So
        an unfinished hypothesis can never end above log P / lp(limit); cp is never above 0. Once
        the n-th best finished score is at least that, the answer stands. It also stands where no
        hypothesis is left that could go on.
        """
        likeliest = tf.reduce_max(alive_scores, axis=-1, keepdims=True)
        within_reach = likeliest / self._lp(searched["limit"][:, None], searched)
        asked_for = self._last_asked_for(finished_scores, searched)
        greedy = (asked_for > -float("inf")) | (likeliest == -float("inf"))
        is_greedy = searched["beam_size"][:, None] == 1
        return tf.reduce_all(tf.where(is_greedy, greedy, asked_for >= within_reach), axis=-1)

    def _last_asked_for(self, finished_scores, searched):
        """The n-th best score of each sentence, (b, 1)."""
        return tf.gather(finished_scores, searched["n"][:, None] - 1, batch_dims=1)


def _most_first(ids, scores, count):
    """Hypotheses in the order of a count; of equal ones the first stays before the others."""
    order = tf.argsort(count(ids), direction="DESCENDING", stable=True)
    return tf.gather(ids, order, batch_dims=1), tf.gather(scores, order, batch_dims=1)


def no_hypotheses(sentences: tf.Tensor, count: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Places for hypotheses: ids (B, count, 1) of BOS, and scores (B, count) of -inf."""
    return tf.fill([sentences, count, 1], BOS), tf.fill([sentences, count], -float("inf"))


def placed(found: tuple, sentence: tf.Tensor, newest: tuple) -> tuple:
    """Ids and scores of all sentences, with the newest of some, numbers (b,), in their places."""
    places = sentence[:, None]
    both = zip(found, newest, strict=True)
    return tuple(tf.tensor_scatter_nd_update(one, places, new) for one, new in both)


def extended(ids: tf.Tensor, tokens: tf.Tensor, places: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Hypotheses (b, K, t), extended by some of the tokens (b, K, m), whose places in (b, K m) are
    (b, n): ids (b, n, t + 1), and the hypotheses that they extend, (b, n).
    """
    parents = places // tf.shape(tokens)[2]
    chosen = tf.gather(tf.reshape(tokens, [tf.shape(tokens)[0], -1]), places, batch_dims=1)
    return tf.concat([tf.gather(ids, parents, batch_dims=1), chosen[:, :, None]], axis=-1), parents


def first(scores: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Scores (b, m), each row's first `count` (b,) kept and the others set to -inf."""
    return tf.where(tf.range(tf.shape(scores)[1]) < count[:, None], scores, -float("inf"))


def _check(beam_size, length_penalty, num_hypotheses):
    if not isinstance(beam_size, int) or beam_size < 1:
        raise ValueError(f"`beam_size` must be an integer, at least 1. Received: {beam_size=}.")
    if not 0 <= length_penalty < float("inf"):
        raise ValueError(
            f"`length_penalty` must be at least 0 and finite. Received: {length_penalty=}."
        )
    if not 1 <= num_hypotheses <= beam_size:
        raise ValueError(
            f"`num_hypotheses` must lie in 1..beam_size={beam_size}. Received: {num_hypotheses=}."
        )


class Covering:
    """A stepper that adds up the attention of another stepper in its state.

    Its state is a dictionary: "inner", that of the other stepper, and "coverage", how much each
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


def coverage_penalty(coverage: tf.Tensor, beta: float) -> tf.Tensor:
    """cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1)), at most 0, of coverages sum_j p_ij, (..., S):
    how much all target tokens attend to source token i.
    """
    return beta * tf.reduce_sum(tf.math.log(tf.clip_by_value(coverage, LEAST, 1.0)), axis=-1)
