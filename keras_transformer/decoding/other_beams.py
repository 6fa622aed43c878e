"""Beam searches of Marian, OpenNMT-tf and Hugging Face, which treat a hypothesis that ends
differently from that of section 6.1 (Vaswani et al. 2017).
"""

import tensorflow as tf

from keras_transformer.decoding.beam_search import BeamSearch, extended, first, placed
from pipelines.special_ids import EOS, PAD


class ShrinkingBeamSearch(BeamSearch):
    """Marian's beam search (Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation
    in C++"): a hypothesis that ends takes its place in the beam with it.

    Those of the k best extensions that end are finished, and the beam has as many places less from
    then on. A sentence is done when no place is left. Called as `BeamSearch`.
    """

    def _extend(self, logits, state, position, unfinished, finished):
        ids, scores, parents = self._candidates(unfinished, logits, position)
        scores = first(scores, unfinished["beam_size"])
        candidates = ids, scores, parents
        coverage = self._coverage(state, unfinished)
        finished = self._finish(candidates, finished, unfinished, position + 1, coverage)
        ended = (ids[:, :, -1] == EOS) & (scores > -float("inf"))
        places = unfinished["beam_size"] - tf.math.count_nonzero(ended, axis=1, dtype=tf.int32)
        unfinished = {**unfinished, "beam_size": places}
        (ids, scores), parents = self._survivors(candidates, unfinished)
        likeliest = tf.reduce_max(scores, axis=-1)
        remaining = tf.cast(tf.where((places > 0) & (likeliest > -float("inf")))[:, 0], tf.int32)
        return {**unfinished, "ids": ids, "scores": scores}, finished, remaining, parents


class StayingBeamSearch(BeamSearch):
    """OpenNMT-tf's beam search (Klein et al. 2017, "OpenNMT: Open-Source Toolkit for Neural Machine
    Translation"): a hypothesis that ends stays in the beam, and competes with those that go on.

    All are ranked by log P(Y | X) / lp(Y); for a hypothesis that ended in an earlier turn, |Y|
    counts one token too many. A sentence is done when all K have ended; the result is the beam in
    its own order. At the limit every hypothesis ends as it is, and EOS costs nothing there, except
    in a beam of 1, which is greedy search. As in OpenNMT-tf, a hypothesis that has ended and moves
    to another place gets the log P of the one that was there before. Arguments, call and result as
    of `BeamSearch`, without coverage.
    """

    def _extend(self, logits, state, position, unfinished, finished):
        lengths, ended = _lengths(unfinished["ids"])
        sums = unfinished["scores"]
        at_limit = (unfinished["limit"] == position + 1) & (unfinished["beam_size"] > 1)
        at_limit = at_limit[:, None]
        # The only extension of a hypothesis that has ended is itself.
        scores, tokens = self.extensions(unfinished, logits, position)
        itself = tf.where(tf.range(tf.shape(scores)[2]) == 0, sums[:, :, None], -float("inf"))
        scores = tf.where((ended | at_limit)[:, :, None], itself, scores)
        tokens = tf.where(ended[:, :, None], PAD, tokens)

        ranks = scores / self._lp(lengths + 1, unfinished)[:, :, None]
        sentences = tf.shape(scores)[0]
        _, places = tf.math.top_k(tf.reshape(ranks, [sentences, -1]), self.beam_size)
        own = tf.range(self.beam_size) * tf.shape(scores)[2]
        places = tf.where(at_limit, own, places)
        ids, parents = extended(unfinished["ids"], tokens, places)
        chosen = tf.gather(tf.reshape(scores, [sentences, -1]), places, batch_dims=1)
        chosen = tf.where(tf.gather(ended, parents, batch_dims=1), sums, chosen)
        chosen = first(chosen, unfinished["beam_size"])

        lengths, ended = _lengths(ids)
        longer = tf.pad(finished[0], [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
        results = tf.where(ended, chosen / self._lp(lengths, unfinished), -float("inf"))
        is_result = results[:, :, None] > -float("inf")
        newest = (tf.where(is_result, ids, PAD), results)
        finished = placed((longer, finished[1]), unfinished["sentence"], newest)
        goes_on = tf.reduce_any(~ended & (chosen > -float("inf")), axis=1)
        remaining = tf.cast(tf.where(goes_on)[:, 0], tf.int32)
        return {**unfinished, "ids": ids, "scores": chosen}, finished, remaining, parents


class UntilFullBeamSearch(BeamSearch):
    """Hugging Face's beam search with early_stopping=True (Wolf et al. 2020, "Transformers:
    State-of-the-Art Natural Language Processing"): a sentence is done as soon as K hypotheses have
    ended. At the limit all end, and EOS costs nothing there, except in a beam of 1. Called as
    `BeamSearch`.
    """

    def extensions(self, unfinished, logits, position):
        scores, tokens = super().extensions(unfinished, logits, position)
        at_limit = (unfinished["limit"] == position + 1) & (unfinished["beam_size"] > 1)
        is_first = tf.range(tf.shape(scores)[2]) == 0
        itself = tf.where(is_first, unfinished["scores"][:, :, None], -float("inf"))
        return tf.where(at_limit[:, None, None], itself, scores), tokens

    def _is_done(self, alive_scores, finished_scores, unfinished):
        worst = tf.gather(finished_scores, unfinished["beam_size"] - 1, batch_dims=1)
        nothing_left = tf.reduce_max(alive_scores, axis=-1) == -float("inf")
        return (worst > -float("inf")) | nothing_left


class UntilWorseBeamSearch(UntilFullBeamSearch):
    """Hugging Face's beam search with early_stopping=False: a sentence is done when K hypotheses
    have ended and the likeliest unfinished one would score no better than the worst of these if it
    ended at its present length. Called as `BeamSearch`.
    """

    def _is_done(self, alive_scores, finished_scores, unfinished):
        length = tf.shape(unfinished["ids"])[2]
        likeliest = tf.reduce_max(alive_scores, axis=-1, keepdims=True)
        worst = tf.gather(finished_scores, unfinished["beam_size"] - 1, batch_dims=1)
        is_worse = worst >= (likeliest / self._lp(length, unfinished))[:, 0]
        is_worse |= unfinished["beam_size"] == 1
        return is_worse & super()._is_done(alive_scores, finished_scores, unfinished)


def _lengths(ids):
    """Return |Y| of hypotheses (b, K, t + 1), int32 (b, K), and which of them have ended."""
    return (
        tf.math.count_nonzero(ids[:, :, 1:] != PAD, axis=2, dtype=tf.int32),
        (ids[:, :, -1] == EOS) | (ids[:, :, -1] == PAD),
    )


# By the values of --beam_form.
BEAMS = {
    "leaving": BeamSearch,
    "shrinking": ShrinkingBeamSearch,
    "staying": StayingBeamSearch,
    "until_full": UntilFullBeamSearch,
    "until_worse": UntilWorseBeamSearch,
}
