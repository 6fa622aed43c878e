"""Greedy search: the likeliest next token, every time. Beam search with a beam of 1 (Vaswani et al.
2017, section 6.1).
"""

import tensorflow as tf

from keras_transformer.decoding import loop
from keras_transformer.decoding.candidates import best_tokens, log_normalizer
from keras_transformer.decoding.constraints import Constraints
from pipelines.special_ids import BOS, EOS, PAD


class GreedySearch:
    """The likeliest next token until EOS or the limit. A sentence that has ended leaves the batch.

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
            stepper, source, self.constraints.wanted(limits, minima, prefixes)
        )
        return ids[:, None, :], scores[:, None]

    def _one_by_one(self, stepper, source, searched):
        """One token after the other for each row of `searched`, which holds what is wanted: ids (B,
        L) and scores (B,).
        """
        sentences = tf.shape(searched["limit"])[0]
        searched = {
            **searched,
            "sentence": tf.range(sentences),
            "ids": tf.fill([sentences, 1, 1], BOS),
        }

        def extend(logits, state, position, searched, found):
            ids, scores = found
            logits, allowed, forced, may_end = self.constraints(
                logits, searched["ids"], position, searched
            )
            chosen, newest = self._choose(allowed, forced, may_end, position, searched)
            places = searched["sentence"][:, None]
            scores = tf.tensor_scatter_nd_add(scores, places, chosen - log_normalizer(logits))
            ids = tf.concat([ids, tf.scatter_nd(places, newest, [sentences])[:, None]], axis=1)
            going_on = tf.where((newest != EOS) & (chosen > -float("inf")))[:, 0]
            longer = tf.concat([searched["ids"], newest[:, None, None]], axis=2)
            searched = {**searched, "ids": longer}
            return searched, (ids, scores), tf.cast(going_on, tf.int32), None

        found = (tf.zeros([sentences, 0], tf.int32), tf.zeros([sentences]))
        ids, scores = loop.run(stepper, source, searched, found, extend)
        return tf.where(scores[:, None] > -float("inf"), ids, PAD), scores

    def _choose(self, allowed, forced, may_end, position, searched):
        """The next token of each row and its logit, -inf where none may come.

        Args:
            allowed, forced, may_end: as `Constraints` return them, of b rows.
            position: how many tokens have come, a scalar.
            searched: what the search carries, b rows.

        Returns:
            The tokens' logits, float32 (b,), and the tokens, int32 (b,).
        """
        logits, tokens = best_tokens(allowed, 1, forced, may_end)
        return logits[:, 0], tokens[:, 0]
