"""BPE-dropout (Provilkov et al. 2020): some merges of the byte pairs of section 5.1 (Vaswani et al.
2017) are left out at random.

Shapes: N characters, or what they are merged to, of all sentences in a row; W words.
"""

import numpy as np
import tensorflow as tf

from pipelines.random_numbers import GOLDEN, mix
from pipelines.vocabularies.segmentation import Characters, Segmentation
from pipelines.vocabularies.vocabulary import Vocabulary

NONE = np.iinfo(np.int64).max


class BpeDropout(Segmentation):
    """Cut sentences into characters and merge them anew, leaving out merges at random.

    In each step, and in each word, every merge that is possible is left out with probability p. Of
    the others the first to be learned is made. A word is finished when none is left. With p = 0 the
    result is the plain segmentation.

    Args:
        vocabulary: of byte pairs.
        probability: p, in [0, 1). The authors take 0.1.
        seed: of what is drawn, at least 0.

    Raises:
        ValueError: if the vocabulary is not of byte pairs.

    Reference: Provilkov et al. 2020, "BPE-Dropout: Simple and Effective Subword Regularization".
    """

    def __init__(self, vocabulary: Vocabulary, probability: float, seed: int):
        ids = vocabulary.merges
        if ids is None:
            raise ValueError(
                "`bpe_dropout` needs a vocabulary of byte pairs. Received: one of another kind. "
                "Learn it with --vocabulary_model=bpe, or leave --bpe_dropout out."
            )
        super().__init__(ids, vocabulary.size, seed)
        self._threshold = tf.constant(int(probability * 2**64), tf.uint64)
        merges = {
            ids[piece[:cut]] * self.size + ids[piece[cut:]]: number
            for piece, number in ids.items()
            for cut in range(1, len(piece))
            if piece[:cut] in ids and piece[cut:] in ids
        }
        self._pairs = np.array(sorted(merges), np.int64)
        self._merged = np.array([merges[pair] for pair in self._pairs.tolist()], np.int64)

    def join(self, characters: Characters) -> tuple[tf.Tensor, tf.Tensor]:
        """Merge characters until every word is finished."""
        first = tf.constant(1, tf.uint64)
        active = tf.ones([characters.words[-1] + 1], tf.bool)
        shapes = [tf.TensorShape([None])] * 5
        _, _, ids, _, sentences, *_ = tf.while_loop(
            lambda _, goes_on, *rest: goes_on,
            self._step,
            (first, True, *characters, active),
            shape_invariants=(first.shape, tf.TensorShape([]), *shapes),
        )
        return ids, sentences

    def _step(self, number, _, ids, words, sentences, draws, active):
        """Make one merge in each active word (W,), and leave those active that had one."""
        count = tf.size(active)
        of_word = words[:-1]
        merged = self._possible(ids, draws, number)
        together = (of_word == words[1:]) & tf.gather(active, of_word)
        merged = tf.where(together, merged, NONE)
        best = tf.math.unsorted_segment_min(merged, of_word, count)
        is_best = (merged < NONE) & (merged == tf.gather(best, of_word))
        # The leftmost of equals.
        places = tf.where(is_best, tf.range(tf.size(merged, tf.int64)), NONE)
        leftmost = tf.math.unsorted_segment_min(places, of_word, count)
        chosen = is_best & (places == tf.gather(leftmost, of_word))
        ids = tf.concat([tf.where(chosen, merged, ids[:-1]), ids[-1:]], axis=0)
        stays = tf.concat([[True], ~chosen], axis=0)
        left = (tf.boolean_mask(part, stays) for part in (ids, words, sentences, draws))
        active = best < NONE
        return number + 1, tf.reduce_any(active), *left, active

    def _possible(self, ids, draws, number):
        """The piece that each two neighbours make, NONE where none or where it is left out."""
        pairs = ids[:-1] * self.size + ids[1:]
        places = tf.searchsorted(self._pairs, pairs, out_type=tf.int64)
        places = tf.minimum(places, len(self._pairs) - 1)
        is_left_out = mix(draws[:-1] + GOLDEN * number) < self._threshold
        exists = (tf.gather(self._pairs, places) == pairs) & ~is_left_out
        return tf.where(exists, tf.gather(self._merged, places), NONE)
