"""Another segmentation of the same text each time it is seen, so that a model learns from several
spellings of the pieces of section 5.1 (Vaswani et al. 2017); and BPE-dropout (Provilkov et al.
2020), where some merges of the byte pairs are left out at random.

It is arithmetic on tensors, and so a part of a tf.data graph. What is drawn follows from the seed
and the place in the stream by counting, so that an interrupted run draws the same again. Shapes: B
sentences; N characters, or what they are merged to, of all sentences in a row; W words.
"""

import abc
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from pipelines.random_numbers import GOLDEN, key, mix
from pipelines.vocabularies.token_ids import TokenIds
from pipelines.vocabularies.vocabulary import SPACE, Vocabulary

NONE = np.iinfo(np.int64).max


class Characters(NamedTuple):
    """The characters of sentences. What has none, such as a tag or EOS, counts as one.

    Attributes:
        ids: of the pieces that hold one character each, int64 (N,).
        words: the word of each, counted through all sentences, int64 (N,). No piece holds
            characters of two words.
        sentences: the sentence of each, (N,).
        draws: a random number of each, which follows from its sentence's key and its place there,
            uint64 (N,).
    """

    ids: tf.Tensor
    words: tf.Tensor
    sentences: tf.Tensor
    draws: tf.Tensor


class Variation(abc.ABC):
    """Give sentences anew each time that they are seen.

    Args:
        seed: of what is drawn, at least 0.

    Call arguments:
        flat, starts: sentences in their plain segmentation, as in `TokenIds`, tensors.
        rows: numbers of sentences, int64 (B,).
        keys: from `keys`, uint64 (B,).

    Returns:
        int32 (B, L), padded with 0 to the longest, L.
    """

    def __init__(self, seed: int):
        self.seed = seed

    def keys(self, buckets: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """The numbers that examples at places of their buckets' streams draw by, uint64 (B,)."""
        return key(self.seed, buckets, places)

    @abc.abstractmethod
    def __call__(
        self, flat: tf.Tensor, starts: tf.Tensor, rows: tf.Tensor, keys: tf.Tensor
    ) -> tf.Tensor: ...


class Segmentation(Variation):
    """Cut sentences into characters, and join these to pieces anew: the pieces of text by their
    ids, of the V pieces of the vocabulary. Each character of a piece is a piece as well.
    """

    def __init__(self, ids: Mapping[str, int], size: int, seed: int):
        super().__init__(seed)
        self.size = size
        characters = [[number] for number in range(size)]
        for piece, number in ids.items():
            characters[number] = [ids[character] for character in piece]
        lengths = [len(one) for one in characters]
        self._characters = TokenIds.of_lengths(np.concatenate(characters), lengths)
        inside = [number for piece, number in ids.items() if len(piece) == 1 and piece != SPACE]
        self._begins_word = ~np.isin(np.arange(size), inside)

    @abc.abstractmethod
    def join(self, characters: Characters) -> tuple[tf.Tensor, tf.Tensor]:
        """The ids of the pieces that characters are joined to, int64, and their sentences."""

    def __call__(self, flat, starts, rows, keys):
        ids, sentences = self.join(self._cut(flat, starts, rows, keys))
        rows_of_ids = tf.RaggedTensor.from_value_rowids(
            tf.cast(ids, tf.int32), sentences, nrows=tf.size(rows, tf.int64), validate=False
        )
        return rows_of_ids.to_tensor()

    def _cut(self, flat, starts, rows, keys):
        pieces = sequences_at(flat, starts, rows)
        characters = sequences_at(self._characters.flat, self._characters.starts, pieces.values)
        sentences = tf.gather(pieces.value_rowids(), characters.value_rowids())
        counts = tf.math.bincount(tf.cast(sentences, tf.int32), minlength=tf.size(rows))
        # A character draws by its sentence and its place there, whatever stands beside it.
        places = tf.ragged.range(tf.cast(counts, tf.int64)).flat_values
        draws = mix(tf.gather(keys, sentences) + GOLDEN * tf.cast(places + 1, tf.uint64))
        begins = tf.gather(self._begins_word, characters.values) | (places == 0)
        words = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        return Characters(characters.values, words, sentences, draws)


class OtherVersion(Variation):
    """Give some sentences in another version, or in the plain one where that has more than
    `longest` tokens, EOS among them. What is given is changed or cut further by a variation, if
    there is one.
    """

    def __init__(self, seed: int, longest: int, variation: Variation | None = None):
        super().__init__(seed)
        self.longest = longest
        self.variation = variation

    @abc.abstractmethod
    def others(
        self, plain: tf.RaggedTensor, rows: tf.Tensor, keys: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """The other version of plain sentences, ragged ids, and where to give it, booleans (B,)."""

    def __call__(self, flat, starts, rows, keys):
        plain = tf.cast(sequences_at(flat, starts, rows), tf.int32)
        other, is_other = self.others(plain, rows, keys)
        is_other &= other.row_lengths() <= self.longest
        count = tf.size(rows, tf.int64)
        places = tf.range(count)
        chosen = tf.where(is_other, places + count, places)
        ids = tf.gather(tf.concat([plain, tf.cast(other, tf.int32)], axis=0), chosen)
        if self.variation is None:
            return ids.to_tensor()
        return self.variation(ids.values, ids.row_splits, places, keys)


def sequences_at(flat: tf.Tensor, starts: tf.Tensor, rows: tf.Tensor) -> tf.RaggedTensor:
    """Some sequences of `TokenIds`, ragged int64."""
    places = tf.ragged.range(tf.gather(starts, rows), tf.gather(starts, rows + 1))
    return places.with_values(tf.cast(tf.gather(flat, places.values), tf.int64))


class BpeDropout(Segmentation):
    """Cut sentences into characters and merge them anew, leaving out merges at random.

    In each step, and in each word, every merge that is possible is left out with probability p. Of
    the others the first to be learned is made. A word is finished when none is left. With p = 0 the
    result is the plain segmentation; the authors take 0.1.

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
