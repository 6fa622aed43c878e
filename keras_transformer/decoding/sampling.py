"""Sampling: the next token drawn from what the model finds likely, where section 6.1 of Vaswani et
al. 2017 searches for the best.
"""

import tensorflow as tf

from keras_transformer.decoding.candidates import best_tokens, possible_tokens
from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.greedy import GreedySearch


class Sampling(GreedySearch):
    """Draws n translations of a sentence and returns the likeliest of them first ("best of n").

        P(v) ~ exp(z_v / temperature) over the top_k likeliest tokens, of these the fewest that hold
        top_p of the probability

    A draw depends on the seed, the sentence's own seed, its number among the n, and the position.
    It does not depend on the other sentences of the batch.

    Args:
        samples: n, at least 1.
        temperature: above 0; below 1 draws likely tokens more often. May be a per-sentence tensor,
            float32 (B,), unvalidated.
        top_k: how many tokens are drawn from; 0: all.
        top_p: share of the probability that is drawn from, in (0, 1].
        seed: of all draws. May be a per-sentence tensor, int64 (B,).
        num_hypotheses: how many of the samples to return, at most n.
        constraints: `Constraints` on the tokens.

    Call arguments: see `keras_transformer.decoding`. `seeds` is a number for each sentence, such as
        a hash of it; 0 by default.

    Returns:
        ids, int32 (B, n, L); and log P(Y | X) of the model, whatever the temperature, float32 (B,
        n), best first.

    Raises:
        ValueError: naming the argument that is out of range.

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
            raise ValueError(
                f"`samples` must be an integer of at least 1. Received: samples={samples}."
            )
        if not tf.is_tensor(temperature) and not 0 < temperature < float("inf"):
            raise ValueError(
                f"`temperature` must be above 0 and finite. Received: temperature={temperature}."
            )
        if not isinstance(top_k, int) or top_k < 0:
            raise ValueError(f"`top_k` must be an integer, at least 0. Received: top_k={top_k}.")
        if not 0 < top_p <= 1:
            raise ValueError(f"`top_p` must be above 0 and at most 1. Received: top_p={top_p}.")
        if not 1 <= num_hypotheses <= samples:
            raise ValueError(
                f"`num_hypotheses` must lie in 1..samples={samples}. Received: "
                f"num_hypotheses={num_hypotheses}."
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
        searched = self.constraints.wanted(limits, minima, prefixes) | {
            "temperature": tf.broadcast_to(self.temperature, [sentences])
        }
        searched, source = tf.nest.map_structure(
            lambda tensor: tf.repeat(tensor, samples, axis=0), (searched, source)
        )
        searched["uniform"] = self._uniform_numbers(sentences, searched["limit"], seeds)
        ids, scores = self._one_by_one(stepper, source, searched)
        scores, order = tf.math.top_k(tf.reshape(scores, [sentences, samples]), self.num_hypotheses)
        return tf.gather(tf.reshape(ids, [sentences, samples, -1]), order, batch_dims=1), scores

    def _uniform_numbers(self, sentences, limits, seeds):
        """A number in [0, 1) for each sample and position, float32 (B n, longest limit)."""
        samples = self.beam_size
        seeds = tf.zeros([sentences], tf.int64) if seeds is None else seeds
        number = tf.range(samples, dtype=tf.int64)
        # Every draw of a sentence has a seed of its own, far from the others'. Where sentences have
        # seeds of their own, these stand in a column.
        draws = tf.broadcast_to(
            tf.reshape(tf.cast(self.seed, tf.int64), [-1, 1]) + number * 0x9E3779B97F4A7C1,
            [sentences, samples],
        )
        pairs = tf.stack([tf.broadcast_to(seeds[:, None], [sentences, samples]), draws], axis=-1)
        longest = tf.reduce_max(tf.concat([[0], limits], axis=0))

        def draw(pair):
            return tf.random.stateless_uniform([longest], pair)

        # One row more, because `map_fn` refuses a batch of no sentences.
        pairs = tf.pad(tf.reshape(pairs, [-1, 2]), [[0, 1], [0, 0]])
        return tf.map_fn(draw, pairs, fn_output_signature=tf.TensorSpec([None], tf.float32))[:-1]

    def _choose(self, allowed, forced, may_end, position, searched):
        if self.top_k or self.top_p < 1:
            logits, tokens = best_tokens(
                allowed, min(self.top_k or allowed.shape[-1], allowed.shape[-1]), forced, may_end
            )
        else:
            logits = possible_tokens(allowed, forced, may_end)
            tokens = tf.broadcast_to(tf.range(tf.shape(logits)[1]), tf.shape(logits))
        likely = tf.exp(
            (logits - tf.reduce_max(logits, axis=-1, keepdims=True))
            / searched["temperature"][:, None]
        )
        summed = tf.cumsum(likely, axis=-1)
        total = summed[:, -1]
        if self.top_p < 1:
            # A token counts while those before it hold less than top_p; the first always counts.
            held = tf.math.count_nonzero(
                summed - likely < self.top_p * total[:, None], axis=-1, dtype=tf.int32
            )
            total = tf.gather(summed, tf.maximum(held - 1, 0), batch_dims=1)
        # The uniform number is below 1, so the place lies inside, at a token of a probability
        # above 0.
        drawn = tf.searchsorted(
            summed, (searched["uniform"][:, position] * total)[:, None], side="right"
        )
        # Where no token is allowed, all of this is NaN. Any place will do, for its logit is -inf.
        drawn = tf.minimum(drawn, tf.shape(summed)[1] - 1)
        chosen = tf.gather(logits, drawn, batch_dims=1)[:, 0]
        return chosen, tf.gather(tokens, drawn, batch_dims=1)[:, 0]
