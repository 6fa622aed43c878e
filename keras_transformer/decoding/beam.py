"""Beam search with a length penalty (Vaswani et al. 2017, section 6.1; Wu et al. 2016, section 7, eq. 14)."""

import tensorflow as tf

from keras_transformer.decoding.cache import BOS, EOS, PAD, growing_shapes, reorder, token_log_probabilities


def length_penalty(length, alpha):
    """lp(Y) = ((5 + |Y|) / 6)^alpha, where |Y| counts the tokens of Y and its EOS."""
    return ((5.0 + tf.cast(length, tf.float32)) / 6.0) ** alpha


class BeamSearch:
    """Keeps the K likeliest unfinished hypotheses; of the finished ones the best by log P(Y | X) / lp(Y).

    1. Every hypothesis is extended by every token; the 2 K best extensions are the candidates.
    2. A candidate among the first K that ends in EOS is finished.
    3. The K best candidates that do not end in EOS go on.
    4. A sentence is done when K hypotheses are finished, or when no unfinished one can still win.

    A beam of 1 is greedy search: when its first candidate ends in EOS, one hypothesis is finished and the sentence is done.

    Args:
        beam_size: K, at least 1; the paper's 4.
        length_penalty: alpha, at least 0; the paper's 0.6.
        num_hypotheses: n, how many translations to give for a sentence, at most K.

    Call arguments:
        step: see `keras_transformer.decoding`.
        past: the cache before the first token, B K rows.
        limits: most tokens of each sentence, EOS among them, integers (B,), each at least 1. EOS is forced there.

    Returns:
        ids, int32 (B, n, L); and log P(Y | X) / lp(Y), float32 (B, n), best first, -inf where fewer than n were finished.

    Raises:
        ValueError: naming the argument that is out of range.
    """

    def __init__(self, beam_size=4, length_penalty=0.6, num_hypotheses=1):
        if not isinstance(beam_size, int) or beam_size < 1:
            raise ValueError(f"`beam_size` must be an integer of at least 1. Received: beam_size={beam_size}.")
        if not 0 <= length_penalty < float("inf"):
            raise ValueError(f"`length_penalty` must be at least 0 and finite. Received: length_penalty={length_penalty}.")
        if not 1 <= num_hypotheses <= beam_size:
            raise ValueError(f"`num_hypotheses` must lie in 1..beam_size={beam_size}. Received: num_hypotheses={num_hypotheses}.")
        self.beam_size = beam_size
        self.length_penalty = length_penalty
        self.num_hypotheses = num_hypotheses

    def __call__(self, step, past, limits):
        batch, width = tf.shape(limits)[0], self.beam_size

        def unfinished(position, alive, finished, done, past):
            # The second half ends the search of a model whose logits are not numbers.
            return ~tf.reduce_all(done) & (position < tf.reduce_max(limits))

        def extend(position, alive, finished, done, past):
            ids, scores = alive
            newest = ids[:, :, -1]
            logits, past = step(newest, position, past)
            log_probabilities = token_log_probabilities(logits, limits == position + 1) + scores[:, :, None]
            candidates = self._candidates(ids, log_probabilities)
            finished = self._finish(candidates, finished, done, position + 1)
            alive, parents = self._survivors(candidates)
            past = reorder(past, tf.reshape(tf.range(batch)[:, None] * width + parents, [-1]))
            return position + 1, alive, finished, done | self._settled(alive[1], finished[1], limits), past

        one_alive = tf.tile([[0.0] + [-float("inf")] * (width - 1)], [batch, 1])
        alive = (tf.fill([batch, width, 1], BOS), one_alive)
        finished = (tf.fill([batch, width, 1], BOS), tf.fill([batch, width], -float("inf")))
        state = (0, alive, finished, tf.zeros([batch], tf.bool), past)
        hypotheses = (tf.TensorShape([None, width, None]), tf.TensorShape([None, width]))
        shapes = (tf.TensorShape([]), hypotheses, hypotheses, tf.TensorShape([None]), growing_shapes(past))
        _, _, (ids, scores), _, _ = tf.while_loop(unfinished, extend, state, shape_invariants=shapes)
        return ids[:, : self.num_hypotheses, 1:], scores[:, : self.num_hypotheses]

    def _candidates(self, ids, scores):
        """The 2 K best extensions: ids (B, 2K, t + 1), log P (B, 2K), best first, and the hypotheses they extend (B, 2K)."""
        vocabulary_size = tf.shape(scores)[-1]
        flat = tf.reshape(scores, [tf.shape(scores)[0], self.beam_size * vocabulary_size])
        best, extensions = tf.math.top_k(flat, 2 * self.beam_size)
        parents, tokens = extensions // vocabulary_size, extensions % vocabulary_size
        extended = tf.concat([tf.gather(ids, parents, batch_dims=1), tokens[:, :, None]], axis=-1)
        return extended, best, parents

    def _finish(self, candidates, finished, done, length):
        """The K best of the hypotheses finished before and now."""
        ids, scores, _ = candidates
        in_beam = tf.range(2 * self.beam_size) < self.beam_size
        ends = (ids[:, :, -1] == EOS) & in_beam[None] & ~done[:, None]
        penalized = tf.where(ends, scores / length_penalty(length, self.length_penalty), -float("inf"))
        longer = tf.pad(finished[0], [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
        return self._best(tf.concat([longer, ids], axis=1), tf.concat([finished[1], penalized], axis=1))[0]

    def _survivors(self, candidates):
        """The K best candidates that do not end, and the hypotheses that they extend (B, K)."""
        ids, scores, parents = candidates
        alive, chosen = self._best(ids, tf.where(ids[:, :, -1] == EOS, -float("inf"), scores))
        return alive, tf.gather(parents, chosen, batch_dims=1)

    def _best(self, ids, scores):
        best, chosen = tf.math.top_k(scores, self.beam_size)
        return (tf.gather(ids, chosen, batch_dims=1), best), chosen

    def _settled(self, alive_scores, finished_scores, limits):
        """Whether nothing that is still alive can change the answer.

        log P only falls as a hypothesis grows, and lp only rises up to its value at the limit; so an unfinished hypothesis
        can never end above log P / lp(limit). Once the n-th best finished score is no less than that, it stands.
        """
        enough = finished_scores[:, -1] > -float("inf")
        within_reach = tf.reduce_max(alive_scores, axis=-1) / length_penalty(limits, self.length_penalty)
        return enough | (finished_scores[:, self.num_hypotheses - 1] >= within_reach)
