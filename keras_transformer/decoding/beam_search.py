"""Beam search with a length penalty (Vaswani et al. 2017, section 6.1; Wu et al. 2016, section 7,
eq. 14).
"""

import tensorflow as tf

from keras_transformer.decoding.cache import any_rows, growing, take, take_some
from keras_transformer.decoding.candidates import best_tokens, log_normalizer
from keras_transformer.decoding.constraints import Constraints, wanted
from keras_transformer.decoding.coverage import coverage_penalty
from pipelines.special_ids import BOS, EOS, PAD


def length_penalty(length, alpha):
    """lp(Y) = ((5 + |Y|) / 6)^alpha, where |Y| counts the tokens of Y and its EOS."""
    return ((5.0 + tf.cast(length, tf.float32)) / 6.0) ** alpha


class BeamSearch:
    """Keeps the K likeliest unfinished hypotheses; of the finished ones the best by log P(Y | X) /
    lp(Y) + cp(X; Y).

    1. Every hypothesis is extended by every token; the 2 K best extensions are the candidates.
    2. A candidate among the first K that ends in EOS is finished.
    3. The K best candidates that do not end in EOS go on.
    4. A sentence is done when no unfinished hypothesis can still come among the n best. It leaves
       the batch: from then on only the others cost anything.

    A beam of 1 is greedy search: a sentence is done with its first finished hypothesis, though a
    longer one might gain by the penalty.

    K, alpha and n may be tensors of (B,) as well, each sentence's own, which nothing checks: then
    the largest K and n are meant wherever a shape is told, and what a sentence does not have scores
    -inf.

    Args:
        beam_size: K, at least 1; the paper's 4.
        length_penalty: alpha, at least 0; the paper's 0.6.
        num_hypotheses: n, how many translations to give for a sentence, at most K.
        coverage_penalty: beta, at least 0, which takes a step function of `coverage.covering`; 0:
            none, as in the paper.
        constraints: `Constraints` on the tokens; none by default.

    Call arguments:
        step: see `keras_transformer.decoding`.
        past: the cache before the first token, B K rows.
        source: what `step` needs of the source, any nest of tensors with B rows.
        limits: most tokens of each sentence, EOS among them, integers (B,), each at least 1. EOS is
            forced there.
        minima, prefixes: see `constraints.wanted`.

    Returns:
        ids, int32 (B, n, L); and log P(Y | X) / lp(Y) + cp(X; Y), float32 (B, n), best first, -inf
        where fewer than n were finished.

    Raises:
        ValueError: naming the argument that is out of range.
    """

    def __init__(
        self,
        beam_size=4,
        length_penalty=0.6,
        num_hypotheses=1,
        coverage_penalty=0.0,
        constraints=None,
    ):
        if not tf.is_tensor(beam_size):
            _check(beam_size, length_penalty, num_hypotheses)
        if not 0 <= coverage_penalty < float("inf"):
            raise ValueError(
                "`coverage_penalty` must be at least 0 and finite. Received: "
                f"coverage_penalty={coverage_penalty}."
            )
        self._own = {"beam_size": beam_size, "alpha": length_penalty, "n": num_hypotheses}
        # A 1 more, for a batch of no sentences.
        self.beam_size, self.num_hypotheses = (
            tf.reduce_max(tf.pad(size, [[0, 1]], constant_values=1)) if tf.is_tensor(size) else size
            for size in (beam_size, num_hypotheses)
        )
        self.length_penalty = length_penalty
        self.coverage_penalty = coverage_penalty
        self.constraints = constraints or Constraints()

    def __call__(self, step, past, source, limits, minima=None, prefixes=None):
        searched = wanted(limits, minima, prefixes)
        sentences = tf.shape(limits)[0]
        width = self.beam_size
        longest = tf.reduce_max(searched["limit"])

        def unfinished(position, searched, finished, source, past):
            # The second half ends the search of a model whose logits are not numbers.
            return (tf.size(searched["sentence"]) > 0) & (position < longest)

        def extend(position, searched, finished, source, past):
            logits, past = step(searched["ids"][:, :, -1], position, past, source)
            candidates = self._candidates(searched, logits, position)
            finished = self._finish(
                candidates, finished, searched, position + 1, self._coverage(past)
            )
            alive, parents = self._survivors(candidates, searched)
            done = self._settled(alive[1], tf.gather(finished[1], searched["sentence"]), searched)
            going_on = tf.cast(tf.where(~done)[:, 0], tf.int32)
            searched = take({**searched, "ids": alive[0], "scores": alive[1]}, going_on)
            rows = tf.reshape(going_on[:, None] * width + tf.gather(parents, going_on), [-1])
            return position + 1, searched, finished, take_some(source, going_on), take(past, rows)

        def hypotheses(scores):
            return tf.fill([sentences, width, 1], BOS), tf.broadcast_to(scores, [sentences, width])

        ids, scores = hypotheses(tf.where(tf.range(width) == 0, 0.0, -float("inf")))
        own = {name: tf.broadcast_to(value, [sentences]) for name, value in self._own.items()}
        searched |= {**own, "sentence": tf.range(sentences), "ids": ids, "scores": scores}
        finished = hypotheses(-float("inf"))
        state = (0, searched, finished, source, past)
        known = None if tf.is_tensor(width) else width
        growing_ids = tf.TensorShape([None, known, None])
        shapes = (
            tf.TensorShape([]),
            {**any_rows(searched), "ids": growing_ids, "scores": tf.TensorShape([None, known])},
            (growing_ids, tf.TensorShape([None, known])),
            any_rows(source),
            growing(past),
        )
        _, _, (ids, scores), _, _ = tf.while_loop(
            unfinished, extend, state, shape_invariants=shapes
        )
        ids = ids[:, : self.num_hypotheses, 1:]
        scores = scores[:, : self.num_hypotheses]
        not_its_own = tf.range(self.num_hypotheses) >= own["n"][:, None]
        return tf.where(not_its_own[:, :, None], PAD, ids), tf.where(
            not_its_own, -float("inf"), scores
        )

    def _candidates(self, searched, logits, position):
        """The 2 K best extensions: ids (b, 2K, t + 1), log P (b, 2K), best first, and the
        hypotheses they extend (b, 2K).
        """
        sentences = tf.shape(logits)[0]
        width = self.beam_size
        vocabulary_size = logits.shape[-1]
        logits, allowed, forced, may_end = self.constraints(
            logits, searched["ids"], position, searched
        )
        count = tf.minimum(2 * width, vocabulary_size)
        best, tokens = best_tokens(allowed, count, forced, may_end)
        scores = (
            tf.reshape(best - log_normalizer(logits)[:, None], [sentences, width, count])
            + searched["scores"][:, :, None]
        )
        best, places = tf.math.top_k(tf.reshape(scores, [sentences, width * count]), 2 * width)
        best = _first(best, 2 * searched["beam_size"])
        parents = places // count
        tokens = tf.gather(tf.reshape(tokens, [sentences, -1]), places, batch_dims=1)
        return (
            tf.concat(
                [tf.gather(searched["ids"], parents, batch_dims=1), tokens[:, :, None]], axis=-1
            ),
            best,
            parents,
        )

    def _coverage(self, past):
        """Cp of each hypothesis that was extended, (b, K), or None without such a penalty."""
        if not self.coverage_penalty:
            return None
        return tf.reshape(
            coverage_penalty(past["coverage"], self.coverage_penalty), [-1, self.beam_size]
        )

    def _finish(self, candidates, finished, searched, length, coverage):
        """The K best of the hypotheses finished before and now, of all sentences."""
        ids, scores, parents = candidates
        sentence = searched["sentence"]
        penalized = scores / length_penalty(length, searched["alpha"])[:, None]
        if coverage is not None:
            penalized += tf.gather(coverage, parents, batch_dims=1)
        penalized = tf.where(
            ids[:, :, -1] == EOS, _first(penalized, searched["beam_size"]), -float("inf")
        )
        longer = tf.pad(finished[0], [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
        before = tf.gather(longer, sentence)
        scores_before = tf.gather(finished[1], sentence)
        (ids, scores), _ = self._best(
            tf.concat([before, ids], axis=1), tf.concat([scores_before, penalized], axis=1)
        )
        places = sentence[:, None]
        return tf.tensor_scatter_nd_update(longer, places, ids), tf.tensor_scatter_nd_update(
            finished[1], places, scores
        )

    def _survivors(self, candidates, searched):
        """The K best candidates that do not end, and the hypotheses that they extend (b, K)."""
        ids, scores, parents = candidates
        (ids, scores), chosen = self._best(
            ids, tf.where(ids[:, :, -1] == EOS, -float("inf"), scores)
        )
        return (ids, _first(scores, searched["beam_size"])), tf.gather(
            parents, chosen, batch_dims=1
        )

    def _best(self, ids, scores):
        best, chosen = tf.math.top_k(scores, self.beam_size)
        return (tf.gather(ids, chosen, batch_dims=1), best), chosen

    def _settled(self, alive_scores, finished_scores, searched):
        """Whether nothing that is still alive can change the answer.

        log P only falls as a hypothesis grows, and lp only rises up to its value at the limit; so
        an unfinished hypothesis can never end above log P / lp(limit), and cp is never above 0.
        Once the n-th best finished score is no less than that, it stands. Where nothing is alive,
        nothing is within reach.
        """
        likeliest = tf.reduce_max(alive_scores, axis=-1)
        within_reach = likeliest / length_penalty(searched["limit"], searched["alpha"])
        last_asked_for = tf.gather(finished_scores, searched["n"] - 1, batch_dims=1)
        greedy = (last_asked_for > -float("inf")) | (likeliest == -float("inf"))
        return tf.where(searched["beam_size"] == 1, greedy, last_asked_for >= within_reach)


def _first(scores, count):
    """Scores (b, m), of which each row's first `count` (b,) stay, the rest -inf."""
    return tf.where(tf.range(tf.shape(scores)[1]) < count[:, None], scores, -float("inf"))


def _check(beam_size, length_penalty, num_hypotheses):
    if not isinstance(beam_size, int) or beam_size < 1:
        raise ValueError(
            f"`beam_size` must be an integer of at least 1. Received: beam_size={beam_size}."
        )
    if not 0 <= length_penalty < float("inf"):
        raise ValueError(
            "`length_penalty` must be at least 0 and finite. Received: "
            f"length_penalty={length_penalty}."
        )
    if not 1 <= num_hypotheses <= beam_size:
        raise ValueError(
            f"`num_hypotheses` must lie in 1..beam_size={beam_size}. Received: "
            f"num_hypotheses={num_hypotheses}."
        )
