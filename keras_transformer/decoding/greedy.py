"""Greedy search: the likeliest next token, every time. Beam search with a beam of 1 (Vaswani et al.
2017, section 6.1).
"""

import tensorflow as tf

from keras_transformer.decoding.cache import any_rows, growing, take, take_some
from keras_transformer.decoding.candidates import best_tokens, log_normalizer
from keras_transformer.decoding.constraints import Constraints, wanted
from pipelines.special_ids import BOS, EOS, PAD


class GreedySearch:
    """The likeliest next token until EOS or the limit. A sentence that has ended leaves the batch.

    Args:
        constraints: `Constraints` on the tokens; none by default.

    Call arguments:
        step: see `keras_transformer.decoding`.
        past: the cache before the first token, B rows.
        source: what `step` needs of the source, any nest of tensors with B rows.
        limits: most tokens of each sentence, EOS among them, integers (B,), each at least 1. EOS is
            forced there.
        minima, prefixes: see `constraints.wanted`.

    Returns:
        ids, int32 (B, 1, L); and log P(ids), float32 (B, 1), -inf where nothing was left that may
        come.
    """

    beam_size = num_hypotheses = 1

    def __init__(self, constraints=None):
        self.constraints = constraints or Constraints()

    def __call__(self, step, past, source, limits, minima=None, prefixes=None):
        ids, scores = self._one_by_one(step, past, source, wanted(limits, minima, prefixes))
        return ids[:, None, :], scores[:, None]

    def _one_by_one(self, step, past, source, searched):
        """One token after the other for each row of `searched`, which holds what is wanted: ids (B,
        L) and scores (B,).
        """
        sentences = tf.shape(searched["limit"])[0]
        longest = tf.reduce_max(searched["limit"])

        def unfinished(position, searched, ids, scores, source, past):
            # The second half ends the search of a model whose logits are not numbers.
            return (tf.size(searched["sentence"]) > 0) & (position < longest)

        def extend(position, searched, ids, scores, source, past):
            logits, past = step(searched["ids"][:, -1:], position, past, source)
            logits, allowed, forced, may_end = self.constraints(
                logits, searched["ids"][:, None], position, searched
            )
            chosen, newest = self._choose(allowed, forced, may_end, position, searched)
            places = searched["sentence"][:, None]
            scores = tf.tensor_scatter_nd_add(scores, places, chosen - log_normalizer(logits))
            ids = tf.concat([ids, tf.scatter_nd(places, newest, [sentences])[:, None]], axis=1)
            going_on = tf.cast(tf.where((newest != EOS) & (chosen > -float("inf")))[:, 0], tf.int32)
            searched = take(
                {**searched, "ids": tf.concat([searched["ids"], newest[:, None]], axis=1)}, going_on
            )
            return (
                position + 1,
                searched,
                ids,
                scores,
                take_some(source, going_on),
                take_some(past, going_on),
            )

        searched = {
            **searched,
            "sentence": tf.range(sentences),
            "ids": tf.fill([sentences, 1], BOS),
        }
        state = (
            0,
            searched,
            tf.zeros([sentences, 0], tf.int32),
            tf.zeros([sentences]),
            source,
            past,
        )
        growing_ids = tf.TensorShape([None, None])
        shapes = (
            tf.TensorShape([]),
            {**any_rows(searched), "ids": growing_ids},
            growing_ids,
            tf.TensorShape([None]),
            any_rows(source),
            growing(past),
        )
        _, _, ids, scores, _, _ = tf.while_loop(unfinished, extend, state, shape_invariants=shapes)
        return tf.where(scores[:, None] > -float("inf"), ids, PAD), scores

    def _choose(self, allowed, forced, may_end, position, searched):
        """The next token of each row and its logit, -inf where none may come."""
        logits, tokens = best_tokens(allowed, 1, forced, may_end)
        return logits[:, 0], tokens[:, 0]
