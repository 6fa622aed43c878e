"""Constraints that keep a translation (Vaswani et al. 2017, section 6.1) from losing or inventing a
placeholder, a tag or a link.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.candidates import FREE
from keras_transformer.decoding.constraints import Constraints, of_rows
from pipelines.special_ids import PAD

NOT_YET = -1


@dataclasses.dataclass(frozen=True, eq=False)
class SpanConstraints(Constraints):
    """Rules under which a hypothesis has each mark exactly as often as its source.

    1. A mark comes at most as often as in the source.
    2. EOS may come only when no mark is missing.
    3. When the limit leaves room only for the missing marks and EOS, nothing else may come.
    4. The mark of a closing tag may come only while its opening tag is the innermost open one.

    A limit too small for all marks grows to the smallest that suffices. Forced prefixes override
    the rules. As with every `Constraints`, a score stays log P(Y | X) of the model.

    Args:
        marks: ids of the M marks, int32 (M,).
        count: how often each must come, int32 (B, M).
        opened_by: for each mark the number of the mark that it closes, else -1, int32 (B, M).
    """

    _: dataclasses.KW_ONLY
    marks: np.ndarray
    count: tf.Tensor
    opened_by: tf.Tensor

    def wishes(self, limits, minima=None, prefixes=None):
        sentences = super().wishes(limits, minima, prefixes)
        smallest = tf.reduce_sum(self.count, axis=1) + 1
        if prefixes is not None:
            smallest += tf.math.count_nonzero(prefixes != PAD, axis=1, dtype=tf.int32)
        limit = tf.maximum(sentences["limit"], smallest)
        return {**sentences, "limit": limit, "count": self.count, "opened_by": self.opened_by}

    def __call__(self, logits, history, position, sentences):
        width = tf.shape(history)[1]
        logits, allowed, forced, may_end = super().__call__(logits, history, position, sentences)
        count, opened_by, limit = (
            tf.repeat(sentences[name], width, axis=0) for name in ("count", "opened_by", "limit")
        )
        occurs = tf.reshape(history, [-1, tf.shape(history)[2], 1]) == self.marks
        missing = count - tf.math.count_nonzero(occurs, axis=1, dtype=tf.int32)
        left = tf.reduce_sum(tf.maximum(missing, 0), axis=1)
        may_come = (missing > 0) & self._may_close(occurs, opened_by)
        position = of_rows(position, history)
        no_room = limit - position <= left + 1
        is_mark = np.zeros(logits.shape[-1], bool)
        is_mark[self.marks] = True
        ruled = tf.where((no_room & (left > 0))[:, None] & ~is_mark, -float("inf"), allowed)
        rows = tf.range(tf.shape(ruled)[0])[:, None]
        places = tf.stack(tf.meshgrid(rows, self.marks, indexing="ij"), axis=-1)
        bounds = tf.where(may_come, float("inf"), -float("inf"))
        ruled = tf.tensor_scatter_nd_min(ruled, places, bounds)
        ruled = tf.where((forced == FREE)[:, None], ruled, allowed)
        may_end = left <= 0 if may_end is None else may_end & (left <= 0)
        return logits, ruled, forced, may_end

    @staticmethod
    def _may_close(occurs, opened_by):
        """Return which marks close the innermost open tag or close none, booleans (rows, M)."""
        steps = tf.range(tf.shape(occurs)[1])[:, None]
        # Where each mark came last: (rows, M).
        place = tf.reduce_max(tf.where(occurs, steps, NOT_YET), axis=1)
        closes = opened_by >= 0
        opening = tf.maximum(opened_by, 0)
        of_opening = tf.where(closes, tf.gather(place, opening, batch_dims=1), NOT_YET)
        is_open = closes & (of_opening > NOT_YET) & (place == NOT_YET)
        innermost = tf.reduce_max(tf.where(is_open, of_opening, NOT_YET), axis=1, keepdims=True)
        return ~closes | (is_open & (of_opening == innermost))
