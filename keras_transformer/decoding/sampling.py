"""Decoding without a beam: greedy search, which is beam search with a beam of 1 (Vaswani et al.
2017, section 6.1), and sampling.
"""

from numbers import Real

import tensorflow as tf

from keras_transformer.decoding import candidates, loop
from keras_transformer.decoding.candidates import best_tokens, log_normalizer, possible_tokens
from keras_transformer.decoding.constraints import Constraints
from pipelines.random_numbers import GOLDEN, mix
from pipelines.special_ids import BOS, EOS, PAD


class GreedySearch:
    """Greedy search: takes the likeliest next token until EOS or the limit.

    Args:
        constraints: `Constraints` on the tokens; none by default.

    Call arguments: see `keras_transformer.decoding`.

    Returns:
        ids, int32 (B, 1, L); and log P(ids), float32 (B, 1), -inf where no token was allowed.
    """

    beam_size = num_hypotheses = 1

    def __init__(self, constraints: Constraints | None = None):
        self.constraints = constraints or Constraints()

    def __call__(self, stepper, source, limits, minima=None, prefixes=None, seeds=None):
        ids, scores = self._one_by_one(
            stepper, source, self.constraints.wishes(limits, minima, prefixes)
        )
        return ids[:, None, :], scores[:, None]

    def _one_by_one(self, stepper, source, unfinished):
        """Choose token after token for each row of `unfinished`: ids (B, L) and scores (B,)."""
        sentences = tf.shape(unfinished["limit"])[0]
        unfinished = {
            **unfinished,
            "sentence": tf.range(sentences),
            "ids": tf.fill([sentences, 1, 1], BOS),
        }

        def extend(logits, state, position, unfinished, results):
            ids, scores = results
            logits, allowed, forced, may_end = self.constraints(
                logits, unfinished["ids"], position, unfinished
            )
            chosen, newest = self._choose(allowed, forced, may_end, position, unfinished)
            places = unfinished["sentence"][:, None]
            scores = tf.tensor_scatter_nd_add(scores, places, chosen - log_normalizer(logits))
            ids = tf.concat([ids, tf.scatter_nd(places, newest, [sentences])[:, None]], axis=1)
            remaining = tf.where((newest != EOS) & (chosen > -float("inf")))[:, 0]
            longer = tf.concat([unfinished["ids"], newest[:, None, None]], axis=2)
            unfinished = {**unfinished, "ids": longer}
            return unfinished, (ids, scores), tf.cast(remaining, tf.int32), None

        results = (tf.zeros([sentences, 0], tf.int32), tf.zeros([sentences]))
        ids, scores = loop.run(stepper, source, unfinished, results, extend)
        return tf.where(scores[:, None] > -float("inf"), ids, PAD), scores

    def _choose(self, allowed, forced, may_end, position, unfinished):
        """Return logit and id of each row's next token, (b,), from what `Constraints` return."""
        logits, tokens = best_tokens(allowed, 1, forced, may_end)
        return logits[:, 0], tokens[:, 0]


class Sampling(GreedySearch):
    """Sampling: draws n translations of a sentence and returns the likeliest first ("best of n").

        P(v) ~ exp(z_v / temperature) over the top_k likeliest tokens, and of these the fewest whose
        probabilities sum to top_p

    A draw depends on the seed, the sentence's own seed, its number among the n, and the position.
    It does not depend on the other sentences of the batch.

    Args:
        samples: n, at least 1.
        temperature: above 0; below 1 draws likely tokens more often. May be a per-sentence tensor,
            float32 (B,), unvalidated.
        top_k: number of tokens to draw from; 0: all.
        top_p: probability mass to draw from, in (0, 1].
        seed: seed of all draws. May be a per-sentence tensor, int64 (B,).
        num_hypotheses: number of samples to return, at most n.
        constraints: `Constraints` on the tokens.

    Call arguments: see `keras_transformer.decoding`. `seeds` is a number for each sentence, such as
        its hash; 0 by default.

    Returns:
        ids, int32 (B, n, L); and log P(Y | X) of the model, whatever the temperature, float32 (B,
        n), best first.

    Reference: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", for top_p.
    """

    def __init__(
        self,
        samples: int = 1,
        temperature: float | tf.Tensor = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int | tf.Tensor = 1,
        num_hypotheses: int = 1,
        constraints: Constraints | None = None,
    ):
        super().__init__(constraints)
        if not isinstance(samples, int) or samples < 1:
            raise ValueError(f"`samples` must be an integer, at least 1. Received: {samples=}.")
        is_number = isinstance(temperature, Real) and 0 < temperature < float("inf")
        if not (tf.is_tensor(temperature) or is_number):
            raise ValueError(f"`temperature` must be above 0 and finite. Received: {temperature=}.")
        if not isinstance(top_k, int) or top_k < 0:
            raise ValueError(f"`top_k` must be an integer, at least 0. Received: {top_k=}.")
        if not (isinstance(top_p, Real) and 0 < top_p <= 1):
            raise ValueError(f"`top_p` must be above 0 and at most 1. Received: {top_p=}.")
        if num_hypotheses not in range(1, samples + 1):
            raise ValueError(
                f"`num_hypotheses` must lie in 1..samples={samples}. Received: {num_hypotheses=}."
            )
        self.beam_size = samples
        self.temperature = temperature
        self.top_k = top_k
        self.top_p = top_p
        self.seed = seed
        self.num_hypotheses = num_hypotheses

    def __call__(self, stepper, source, limits, minima=None, prefixes=None, seeds=None):
        samples = self.beam_size
        sentences = tf.shape(limits)[0]
        unfinished = self.constraints.wishes(limits, minima, prefixes) | {
            "temperature": tf.broadcast_to(tf.cast(self.temperature, tf.float32), [sentences])
        }
        unfinished, source = tf.nest.map_structure(
            lambda tensor: tf.repeat(tensor, samples, axis=0), (unfinished, source)
        )
        unfinished["key"] = self._keys(sentences, seeds)
        ids, scores = self._one_by_one(stepper, source, unfinished)
        scores, order = tf.math.top_k(tf.reshape(scores, [sentences, samples]), self.num_hypotheses)
        return tf.gather(tf.reshape(ids, [sentences, samples, -1]), order, batch_dims=1), scores

    def _keys(self, sentences, seeds):
        """Return the random key of each sample, uint64 (B n,)."""
        seeds = tf.zeros([sentences], tf.int64) if seeds is None else seeds
        keys = mix(GOLDEN + tf.cast(seeds, tf.uint64))
        keys = mix(keys + GOLDEN * (tf.cast(self.seed, tf.uint64) + 1))
        numbers = tf.cast(tf.range(1, self.beam_size + 1), tf.uint64)
        return tf.reshape(mix(keys[:, None] + GOLDEN * numbers), [-1])

    def _choose(self, allowed, forced, may_end, position, unfinished):
        temperature = unfinished["temperature"]
        logits, tokens, log_weights = self._log_weights(allowed, forced, may_end, temperature)
        # The largest sum is a draw from the softmax (Gumbel 1954). A draw by a cumulative sum would
        # depend on the rounding of all probabilities, and so on the batch.
        noise = _gumbel(unfinished["key"], position, tokens, allowed.shape[-1])
        choice = tf.argmax(log_weights + noise, axis=-1, output_type=tf.int32)
        chosen = tf.gather(logits, choice, batch_dims=1)
        return chosen, tf.gather(tokens, choice, batch_dims=1)

    def _log_weights(self, allowed, forced, may_end, temperature):
        """Return logits and ids of tokens, and the logarithm of the probability of drawing each, up
        to a constant; (rows, n) each.
        """
        if self.top_k or self.top_p < 1:
            logits, tokens = best_tokens(
                allowed, min(self.top_k or allowed.shape[-1], allowed.shape[-1]), forced, may_end
            )
        else:
            logits = possible_tokens(allowed, forced, may_end)
            tokens = tf.broadcast_to(tf.range(tf.shape(logits)[1]), tf.shape(logits))
        log_weights = logits - tf.reduce_max(logits, axis=-1, keepdims=True)
        log_weights = log_weights / temperature[:, None]
        if self.top_p < 1:
            in_nucleus = candidates.in_nucleus(tf.exp(log_weights), self.top_p)
            log_weights = tf.where(in_nucleus, log_weights, -float("inf"))
        return logits, tokens, log_weights


def _gumbel(keys, position, tokens, size):
    """Draw from the standard Gumbel distribution for each token (rows, n) at a position."""
    places = tf.cast(position, tf.int64) * size + tf.cast(tokens, tf.int64) + 1
    draws = mix(keys[:, None] + GOLDEN * tf.cast(places, tf.uint64))
    # The half keeps it above 0 and below 1.
    uniform = (tf.cast(tf.bitwise.right_shift(draws, 12), tf.float64) + 0.5) * 2.0**-52
    return tf.cast(-tf.math.log(-tf.math.log(uniform)), tf.float32)
