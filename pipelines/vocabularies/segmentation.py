"""A new segmentation of the same text each time it is seen, so that a model learns several ways to
cut it into the pieces of section 5.1 (Vaswani et al. 2017); and BPE-dropout (Provilkov et al.
2020), which leaves out some merges of byte pairs at random.

It is arithmetic on tensors, and so part of a tf.data graph. Random numbers follow from the seed and
the place in the stream by counting, so that an interrupted run draws the same again. Shapes: B
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
    """The characters of sentences. A piece without any, such as a tag or EOS, counts as one.

    Attributes:
        ids: of the pieces that hold one character each, int64 (N,).
        words: number of each character's word, counted through all sentences, int64 (N,). No piece
            crosses the border of two words.
        sentences: number of each character's sentence, (N,).
        draws: random numbers, by the key of the sentence and the place in it, uint64 (N,).
    """

    ids: tf.Tensor
    words: tf.Tensor
    sentences: tf.Tensor
    draws: tf.Tensor


class Variation(abc.ABC):
    """A change of sentences that differs each time they are seen.

    Args:
        seed: of the random numbers, at least 0.

    Call arguments:
        flat, starts: all sentences in their plain segmentation, tensors as in `TokenIds`.
        rows: numbers of the sentences to change, int64 (B,).
        keys: from `keys`, uint64 (B,).

    Returns:
        int32 (B, L), padded with 0 to the longest, L.
    """

    def __init__(self, seed: int):
        self.seed = seed

    def keys(self, buckets: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """Return random keys of examples at places of their buckets' streams, uint64 (B,)."""
        return key(self.seed, buckets, places)

    @abc.abstractmethod
    def __call__(
        self, flat: tf.Tensor, starts: tf.Tensor, rows: tf.Tensor, keys: tf.Tensor
    ) -> tf.Tensor: ...


class Segmentation(Variation):
    """Cuts sentences into characters, and joins these to pieces anew. `ids` has the ids of the
    pieces of text, of `size` in all; each character of a piece must be a piece as well.
    """

    def __init__(self, ids: Mapping[str, int], size: int, seed: int):
        super().__init__(seed)
        self.size = size
        characters = [[number] for number in range(size)]
        for piece, number in ids.items():
            characters[number] = [ids[character] for character in piece]
        lengths = list(map(len, characters))
        self._characters = TokenIds.of_lengths(np.concatenate(characters), lengths)
        inside = [number for piece, number in ids.items() if len(piece) == 1 and piece != SPACE]
        self._begins_word = ~np.isin(np.arange(size), inside)

    @abc.abstractmethod
    def join(self, characters: Characters) -> tuple[tf.Tensor, tf.Tensor]:
        """Join characters to pieces: return ids, int64, and the sentence of each."""

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
        # A character's draw depends on its sentence and its place there, not on its neighbours.
        places = tf.ragged.range(tf.cast(counts, tf.int64)).flat_values
        draws = mix(tf.gather(keys, sentences) + GOLDEN * tf.cast(places + 1, tf.uint64))
        begins = tf.gather(self._begins_word, characters.values) | (places == 0)
        words = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        return Characters(characters.values, words, sentences, draws)


class OtherVersion(Variation):
    """Replaces some sentences by another version, unless that has more than `longest` tokens, EOS
    included. The result goes through a further `variation`, if there is one.
    """

    def __init__(self, seed: int, longest: int, variation: Variation | None = None):
        super().__init__(seed)
        self.longest = longest
        self.variation = variation

    @abc.abstractmethod
    def alternatives(
        self, plain: tf.RaggedTensor, rows: tf.Tensor, keys: tf.Tensor
    ) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Return other versions of sentences, ragged ids, and where to use them, booleans (B,)."""

    def __call__(self, flat, starts, rows, keys):
        plain = tf.cast(sequences_at(flat, starts, rows), tf.int32)
        versions, is_used = self.alternatives(plain, rows, keys)
        is_used &= versions.row_lengths() <= self.longest
        count = tf.size(rows, tf.int64)
        places = tf.range(count)
        chosen = tf.where(is_used, places + count, places)
        ids = tf.gather(tf.concat([plain, tf.cast(versions, tf.int32)], axis=0), chosen)
        if self.variation is None:
            return ids.to_tensor()
        return self.variation(ids.values, ids.row_splits, places, keys)


def sequences_at(flat: tf.Tensor, starts: tf.Tensor, rows: tf.Tensor) -> tf.RaggedTensor:
    """Return the sequences at `rows` of `TokenIds`, ragged int64."""
    places = tf.ragged.range(tf.gather(starts, rows), tf.gather(starts, rows + 1))
    return places.with_values(tf.cast(tf.gather(flat, places.values), tf.int64))


class BpeDropout(Segmentation):
    """Cuts sentences into characters and merges them anew, leaving out merges at random.

    In each step, each possible merge of a word is left out with probability p, and of the others
    the one learned first is made. A word is finished when no merge remains. With p = 0 the result
    is the plain segmentation; the authors use 0.1.

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
        """Make one merge in each active word (W,). Words without one become inactive."""
        count = tf.size(active)
        of_word = words[:-1]
        merged = self._possible(ids, draws, number)
        together = (of_word == words[1:]) & tf.gather(active, of_word)
        merged = tf.where(together, merged, NONE)
        best = tf.math.unsorted_segment_min(merged, of_word, count)
        is_best = (merged < NONE) & (merged == tf.gather(best, of_word))
        # Of equal merges, take the leftmost.
        places = tf.where(is_best, tf.range(tf.size(merged, tf.int64)), NONE)
        leftmost = tf.math.unsorted_segment_min(places, of_word, count)
        chosen = is_best & (places == tf.gather(leftmost, of_word))
        ids = tf.concat([tf.where(chosen, merged, ids[:-1]), ids[-1:]], axis=0)
        stays = tf.concat([[True], ~chosen], axis=0)
        remaining = (tf.boolean_mask(part, stays) for part in (ids, words, sentences, draws))
        active = best < NONE
        return number + 1, tf.reduce_any(active), *remaining, active

    def _possible(self, ids, draws, number):
        """Return the piece that each two neighbours make, NONE if none or if it is left out."""
        pairs = ids[:-1] * self.size + ids[1:]
        places = tf.searchsorted(self._pairs, pairs, out_type=tf.int64)
        places = tf.minimum(places, len(self._pairs) - 1)
        is_left_out = mix(draws[:-1] + GOLDEN * number) < self._threshold
        exists = (tf.gather(self._pairs, places) == pairs) & ~is_left_out
        return tf.where(exists, tf.gather(self._merged, places), NONE)
