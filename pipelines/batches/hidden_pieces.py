"""Hidden pieces that a model guesses (Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional
Transformers for Language Understanding", section 3.1 and appendix A.1).

It is arithmetic on tensors, and so part of a tf.data graph. Random numbers follow from a key by
counting: an interrupted run draws the same again. Shapes: B texts; T tokens of the longest; M
guesses of the longest.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from pipelines.batches.examples import KEYS, Examples
from pipelines.batches.labelled_texts import opened
from pipelines.random_numbers import GOLDEN, mix
from pipelines.special_ids import Marks
from pipelines.vocabularies.token_ids import TokenIds

# Of ten pieces to guess, so many become the mask, and so many another piece. The rest stay.
HIDDEN = 8
REPLACED = 1


class Masked(NamedTuple):
    """Texts with hidden pieces: what the model reads, int32 (B, T); the places to guess and the
    true pieces there, int32 (B, M); and weights, float32 (B, M), 1.0 where there is something to
    guess, else 0.0.
    """

    tokens: tf.Tensor
    places: tf.Tensor
    pieces: tf.Tensor
    weights: tf.Tensor


class Masking:
    """Chooses some pieces of each text, and hides most of them: of ten, eight become the mask, one
    becomes a piece drawn from all, and one stays, because in use nothing is hidden.

    A text of n pieces has max(1, round(share n)) to guess; BERT's share is 0.15. Marks and padding
    are never chosen.

    Call arguments:
        tokens: texts between their marks, padded with 0, int32 (B, T).
        keys: random keys of the texts, uint64 (B,).

    Returns:
        `Masked`; M is the number of guesses in a text of T pieces.
    """

    def __init__(self, marks: Marks, size: int, share: float = 0.15):
        self._mask = marks.mask
        self._ordinary = marks.ordinary.astype(np.int32)
        self._is_ordinary = np.isin(np.arange(size), marks.ordinary)
        self._share = share

    def __call__(self, tokens: tf.Tensor, keys: tf.Tensor) -> Masked:
        length = tf.shape(tokens)[1] if tokens.shape[1] is None else tokens.shape[1]
        draws = mix(keys[:, None] + GOLDEN * tf.cast(tf.range(length) + 1, tf.uint64))
        eligible = tf.gather(self._is_ordinary, tokens)
        # The pieces with the largest draws are chosen. Without a bit, they fit into int64.
        rank = tf.where(eligible, tf.cast(tf.bitwise.right_shift(draws, 1), tf.int64), -1)
        _, places = tf.math.top_k(rank, self._count(length))
        eligible = tf.reduce_sum(tf.cast(eligible, tf.int32), axis=1)
        most = tf.minimum(self._count(eligible), eligible)
        chosen = tf.range(self._count(length)) < most[:, None]
        pieces = tf.gather(tokens, places, batch_dims=1)
        hidden = self._hidden(pieces, tf.gather(draws, places, batch_dims=1))
        rows = tf.broadcast_to(tf.range(tf.shape(tokens)[0])[:, None], tf.shape(places))
        masked = tf.tensor_scatter_nd_update(
            tokens, tf.stack([rows, places], axis=-1), tf.where(chosen, hidden, pieces)
        )
        return Masked(masked, places, pieces, tf.cast(chosen, tf.float32))

    def _count(self, pieces):
        """Return how many of so many pieces to guess, at least 1: for an int an int, or int32."""
        if isinstance(pieces, int):
            return max(1, int(np.floor(pieces * self._share + 0.5)))
        shared = tf.cast(pieces, tf.float64) * self._share
        return tf.maximum(1, tf.cast(tf.floor(shared + 0.5), tf.int32))

    def _hidden(self, pieces, draws):
        """Return what the model reads in place of pieces (B, M)."""
        fate = mix(draws + GOLDEN)
        tenth = tf.math.floormod(fate, tf.constant(10, tf.uint64))
        number = tf.math.floormod(mix(fate + GOLDEN), len(self._ordinary))
        another = tf.gather(self._ordinary, tf.cast(number, tf.int32))
        replaced = tf.where(tenth < HIDDEN + REPLACED, another, pieces)
        return tf.where(tenth < HIDDEN, self._mask, replaced)


def examples(texts: TokenIds, marks: Marks, masking: Masking, seed: int) -> Examples:
    """Return texts as `Examples` of masked language modelling.

    A batch is `((tokens, segments, places), pieces, weights)`, of `Masked`; segments are 0. Other
    pieces of a text are hidden each time it is trained on, and always the same in evaluation.
    """

    def to_batch(columns):
        masked = masking(opened(columns["text"], marks), columns[KEYS])
        inputs = (masked.tokens, tf.zeros_like(masked.tokens), masked.places)
        return inputs, masked.pieces, masked.weights

    return Examples({"text": texts}, {}, to_batch, draws=seed)
