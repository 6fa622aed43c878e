"""Beam searches of other programs, which treat a hypothesis that ends otherwise than section 6.1's
does (Vaswani et al. 2017): Marian's, OpenNMT-tf's and Hugging Face's.
"""

import tensorflow as tf

from keras_transformer.decoding.beam_search import BeamSearch, extended, first, placed
from pipelines.special_ids import EOS, PAD


class ShrinkingBeamSearch(BeamSearch):
    """Marian's beam search (Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation
    in C++"): a hypothesis that ends takes its place in the beam with it.

    Of the k best extensions those that end are finished, and the others go on in a beam with as
    many places fewer. A sentence is done when no place is left. Called as `BeamSearch`.
    """

    def _extend(self, logits, state, position, searched, found):
        ids, scores, parents = self._candidates(searched, logits, position)
        scores = first(scores, searched["beam_size"])
        candidates = ids, scores, parents
        found = self._finish(candidates, found, searched, position + 1, self._coverage(state))
        ended = (ids[:, :, -1] == EOS) & (scores > -float("inf"))
        places = searched["beam_size"] - tf.math.count_nonzero(ended, axis=1, dtype=tf.int32)
        searched = {**searched, "beam_size": places}
        (ids, scores), parents = self._survivors(candidates, searched)
        likeliest = tf.reduce_max(scores, axis=-1)
        going_on = tf.cast(tf.where((places > 0) & (likeliest > -float("inf")))[:, 0], tf.int32)
        return {**searched, "ids": ids, "scores": scores}, found, going_on, parents


class StayingBeamSearch(BeamSearch):
    """OpenNMT-tf's beam search (Klein et al. 2017, "OpenNMT: Open-Source Toolkit for Neural Machine
    Translation"): a hypothesis that ends stays in the beam, and competes with those that go on.

    All are ranked by log P(Y | X) / lp(Y), where Y has one token more than a hypothesis that ended
    a turn or more ago. A sentence is done when all K have ended; the beam is then the result, in
    its order. At the limit all end as they stand, and this EOS costs nothing. As in the program,
    one that ended and changes its place takes over the log P of the hypothesis that stood there.
    Arguments, call and result as of `BeamSearch`, without coverage.
    """

    def _extend(self, logits, state, position, searched, found):
        lengths, ended = _lengths(searched["ids"])
        sums = searched["scores"]
        at_limit = searched["limit"][:, None] == position + 1
        # What has ended has one extension: itself.
        scores, tokens = self.extensions(searched, logits, position)
        itself = tf.where(tf.range(tf.shape(scores)[2]) == 0, sums[:, :, None], -float("inf"))
        scores = tf.where((ended | at_limit)[:, :, None], itself, scores)
        tokens = tf.where(ended[:, :, None], PAD, tokens)

        ranks = scores / self._lp(lengths + 1, searched)[:, :, None]
        sentences = tf.shape(scores)[0]
        _, places = tf.math.top_k(tf.reshape(ranks, [sentences, -1]), self.beam_size)
        own = tf.range(self.beam_size) * tf.shape(scores)[2]
        places = tf.where(at_limit, own, places)
        ids, parents = extended(searched["ids"], tokens, places)
        chosen = tf.gather(tf.reshape(scores, [sentences, -1]), places, batch_dims=1)
        chosen = tf.where(tf.gather(ended, parents, batch_dims=1), sums, chosen)
        chosen = first(chosen, searched["beam_size"])

        lengths, ended = _lengths(ids)
        longer = tf.pad(found[0], [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
        results = tf.where(ended, chosen / self._lp(lengths, searched), -float("inf"))
        is_result = results[:, :, None] > -float("inf")
        newest = (tf.where(is_result, ids, PAD), results)
        found = placed((longer, found[1]), searched["sentence"], newest)
        unfinished = tf.reduce_any(~ended & (chosen > -float("inf")), axis=1)
        going_on = tf.cast(tf.where(unfinished)[:, 0], tf.int32)
        return {**searched, "ids": ids, "scores": chosen}, found, going_on, parents


class UntilFullBeamSearch(BeamSearch):
    """Hugging Face's beam search with early_stopping=True (Wolf et al. 2020, "Transformers:
    State-of-the-Art Natural Language Processing"): a sentence is done as soon as K hypotheses have
    ended. At the limit all end, and this EOS costs nothing. Called as `BeamSearch`.
    """

    def extensions(self, searched, logits, position):
        scores, tokens = super().extensions(searched, logits, position)
        at_limit = (searched["limit"] == position + 1)[:, None, None]
        is_first = tf.range(tf.shape(scores)[2]) == 0
        itself = tf.where(is_first, searched["scores"][:, :, None], -float("inf"))
        return tf.where(at_limit, itself, scores), tokens

    def _settled(self, alive_scores, finished_scores, searched):
        worst = tf.gather(finished_scores, searched["beam_size"] - 1, batch_dims=1)
        nothing_left = tf.reduce_max(alive_scores, axis=-1) == -float("inf")
        return (worst > -float("inf")) | nothing_left


class UntilWorseBeamSearch(UntilFullBeamSearch):
    """Hugging Face's beam search with early_stopping=False: a sentence is done when K hypotheses
    have ended and the best that goes on would be no better than the worst of them, if its score
    were divided by lp at the length that it has now. Arguments, call and result as of `BeamSearch`.
    """

    def _settled(self, alive_scores, finished_scores, searched):
        length = tf.shape(searched["ids"])[2]
        likeliest = tf.reduce_max(alive_scores, axis=-1, keepdims=True)
        worst = tf.gather(finished_scores, searched["beam_size"] - 1, batch_dims=1)
        is_worse = worst >= (likeliest / self._lp(length, searched))[:, 0]
        is_worse |= searched["beam_size"] == 1
        return is_worse & super()._settled(alive_scores, finished_scores, searched)


def _lengths(ids):
    """|Y| of hypotheses (b, K, t + 1), float32 (b, K), and which of them have ended."""
    return (
        tf.math.count_nonzero(ids[:, :, 1:] != PAD, axis=2, dtype=tf.int32),
        (ids[:, :, -1] == EOS) | (ids[:, :, -1] == PAD),
    )


# By the name of what becomes of a hypothesis that ends.
BEAMS = {
    "leaving": BeamSearch,
    "shrinking": ShrinkingBeamSearch,
    "staying": StayingBeamSearch,
    "until_full": UntilFullBeamSearch,
    "until_worse": UntilWorseBeamSearch,
}
