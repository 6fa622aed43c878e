"""Beam search for several length penalties at once (Vaswani et al. 2017, section 6.1: the penalty
was "chosen after experimentation on the development set").
"""

import tensorflow as tf

from keras_transformer.decoding.beam_search import BeamSearch, first, length_penalty, placed
from keras_transformer.decoding.constraints import Constraints
from pipelines.special_ids import EOS, PAD


class PenaltySweep(BeamSearch):
    """Beam search for A exponents alpha: the translation of `BeamSearch` with each of them.

    Beam search ranks unfinished hypotheses by log P alone. Alpha only decides which finished one is
    best, and when none can become better any more. So one search keeps the best finished hypothesis
    for each alpha, and a sentence is done when it is done for all of them. (Reranking the n best of
    one search by another alpha would not do: the best for that alpha may not be among them.)

    Args:
        beam_size: K, (1,), at least 1.
        length_penalties: the A exponents, float32 (A,), each at least 0.
        coverage_penalty, constraints, length_penalty_form: see `BeamSearch`.

    Call arguments: see `keras_transformer.decoding`.

    Returns:
        ids, int32 (B, A, L), and scores, float32 (B, A), in the order of the exponents.
    """

    def __init__(
        self,
        beam_size: tf.Tensor,
        length_penalties: tf.Tensor,
        coverage_penalty: float = 0.0,
        constraints: Constraints | None = None,
        length_penalty_form: str = "paper",
    ):
        count = tf.shape(length_penalties)
        super().__init__(beam_size, 0.0, count, coverage_penalty, constraints, length_penalty_form)
        self.num_finished = self.num_hypotheses
        self.length_penalties = length_penalties

    @classmethod
    def of(cls, options, beam_size: tf.Tensor, length_penalties: tf.Tensor) -> BeamSearch:
        """Make the search of `DecodingOptions` for several penalties; other beam forms take one."""
        if options.beam_form != "leaving":
            changes = {"length_penalty": length_penalties, "num_hypotheses": 1}
            return options.beam(beam_size=beam_size, **changes)
        shared = (options.coverage_penalty, options.constraints(), options.length_penalty_form)
        return cls(beam_size, length_penalties, *shared)

    def _finish(self, candidates, finished, unfinished, length, coverage):
        """Return the best finished hypothesis for each alpha: ids (B, A, t + 1), scores (B, A)."""
        ids, scores, parents = candidates
        sentence = unfinished["sentence"]
        ended = tf.where(ids[:, :, -1] == EOS, scores, -float("inf"))
        ended = first(ended, unfinished["beam_size"])
        # (b, A, 2K)
        penalized = ended[:, None] / self._lp(length, unfinished)[:, :, None]
        if coverage is not None:
            penalized += tf.gather(coverage, parents, batch_dims=1)[:, None]
        best = tf.argmax(penalized, axis=-1, output_type=tf.int32)
        now = tf.reduce_max(penalized, axis=-1)
        longer = tf.pad(finished[0], [[0, 0], [0, 0], [0, 1]], constant_values=PAD)
        before = tf.gather(finished[1], sentence)
        # Of equal scores, the hypothesis that was finished first stays.
        is_better = now > before
        ids = tf.where(
            is_better[:, :, None], tf.gather(ids, best, batch_dims=1), tf.gather(longer, sentence)
        )
        return placed((longer, finished[1]), sentence, (ids, tf.maximum(now, before)))

    def _lp(self, length, unfinished):
        """Return lp of each sentence and alpha, (b, A)."""
        return length_penalty(length, self.length_penalties, unfinished["c"][:, None])

    def _scores_to_beat(self, finished_scores, unfinished):
        """Return the best finished score for each alpha, (b, A)."""
        return finished_scores
