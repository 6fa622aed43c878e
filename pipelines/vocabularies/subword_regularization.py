"""Subword regularization (Kudo 2018): segmentations drawn by their likelihood, for the vocabularies
of section 5.1 (Vaswani et al. 2017) that are unigram language models.

SentencePiece can draw them too, but a graph cannot seed its random numbers: a resumed run would see
other pieces. Shapes: N characters of all sentences in a row; W words; K characters of the longest
piece.
"""

import numpy as np
import tensorflow as tf

from pipelines.vocabularies.segmentation import Characters, Segmentation
from pipelines.vocabularies.vocabulary import Vocabulary


class SubwordRegularization(Segmentation):
    """Draws each word's segmentation x from all that the vocabulary allows.

        P(x) = prod_i P(x_i)^alpha / Z

    Forward filtering sums the weights of all segmentations of each prefix of a word. Backward
    sampling then draws the last piece, the one before it, and so on. With alpha = 0 all
    segmentations are equally likely; with a large alpha the likeliest is drawn, which is the plain
    segmentation. The author uses 0.1 to 0.5.

    Reference: Kudo 2018, "Subword Regularization: Improving Neural Network Translation Models with
        Multiple Subword Candidates", section 3.2.
    """

    def __init__(self, vocabulary: Vocabulary, alpha: float, seed: int):
        weights = vocabulary.log_probabilities
        if weights is None:
            raise ValueError(
                "`subword_regularization` needs a vocabulary of a unigram language model. "
                "Received: one of another kind. Learn it with --vocabulary_model=unigram, or leave "
                "--subword_regularization out."
            )
        number_of = {piece: number for number, piece in enumerate(vocabulary.pieces)}
        super().__init__({piece: number_of[piece] for piece in weights}, vocabulary.size, seed)
        self.alpha = alpha
        self._longest = max(map(len, weights))
        self._build_trie(weights, number_of)

    def _build_trie(self, weights, number_of):
        """Number the prefixes of pieces: that of one character has its id, and longer ones follow.

        A sorted table of pairs maps a prefix and its next character to the longer prefix. A piece
        without characters, such as a tag, is a prefix of its own with the weight 0.
        """
        prefix_of = {piece: number_of[piece] for piece in weights if len(piece) == 1}
        longer = {}
        for piece in weights:
            for end in range(2, len(piece) + 1):
                if piece[:end] not in prefix_of:
                    prefix_of[piece[:end]] = self.size + len(longer)
                    longer[prefix_of[piece[: end - 1]], number_of[piece[end - 1]]] = piece[:end]
        pairs = {
            prefix * self.size + character: prefix_of[text]
            for (prefix, character), text in longer.items()
        }
        self._pairs = np.array([*sorted(pairs), np.iinfo(np.int64).max])
        # The last number stands for what is no prefix of a piece.
        self._none = np.int64(self.size + len(longer))
        self._next = np.array([*(pairs[pair] for pair in sorted(pairs)), self._none])
        self._piece_of = np.arange(self._none + 1)
        self._weight_of = np.full(self._none + 1, -np.inf)
        self._weight_of[: self.size] = 0.0
        for piece, weight in weights.items():
            self._piece_of[prefix_of[piece]] = number_of[piece]
            self._weight_of[prefix_of[piece]] = self.alpha * weight

    def join(self, characters: Characters) -> tuple[tf.Tensor, tf.Tensor]:
        prefixes = self._prefixes_by_end(characters)
        weights = tf.gather(self._weight_of, prefixes)
        # Where words begin, and how many characters each has.
        lengths = tf.math.bincount(tf.cast(characters.words, tf.int32), dtype=tf.int64)
        begins = tf.cumsum(lengths, exclusive=True)
        piece_lengths = _filter(weights, characters.draws, begins, lengths)
        is_end = _trace(piece_lengths, begins, lengths)
        chosen = tf.gather(prefixes, piece_lengths - 1, axis=1, batch_dims=1)
        ids = tf.gather(self._piece_of, tf.boolean_mask(chosen, is_end))
        return ids, tf.boolean_mask(characters.sentences, is_end)

    def _prefixes_by_end(self, characters):
        """Return the prefixes that the last 1 to K characters up to each one form, (N, K)."""
        ids = characters.ids
        goes_on = characters.words[1:] == characters.words[:-1]

        def extended(prefixes, _):
            """Return the prefixes with one character more."""
            pairs = prefixes[:-1] * self.size + ids[1:]
            places = tf.searchsorted(self._pairs, pairs, out_type=tf.int64)
            exists = goes_on & (tf.gather(self._pairs, places) == pairs)
            longer = tf.where(exists, tf.gather(self._next, places), self._none)
            return tf.concat([[self._none], longer], axis=0)

        if self._longest == 1:
            return ids[:, None]
        longer = tf.scan(extended, tf.range(2, self._longest + 1), ids)
        return tf.transpose(tf.concat([ids[None], longer], axis=0))


def _filter(weights, draws, begins, lengths):
    """Draw for each character the length that a piece ending there would have, int64 (N,), from the
    log weights of the pieces of 1 to K characters that end there, float64 (N, K), the draws, uint64
    (N,), and the places and lengths of the words, int64 (W,).
    """
    count, longest = (tf.shape(weights, tf.int64)[axis] for axis in (0, 1))
    thresholds = tf.cast(tf.bitwise.right_shift(draws, 32), tf.float64) * 2.0**-32
    # A word of n characters has n + 1 sums, for its first 0, 1, ... n characters.
    firsts = begins + tf.range(tf.size(begins, tf.int64))

    def step(place, sums, piece_lengths):
        first = tf.boolean_mask(firsts, lengths > place)
        ends = tf.boolean_mask(begins, lengths > place) + place
        before = tf.maximum(first[:, None] + place - tf.range(longest), first[:, None])
        joint = tf.gather(sums, before) + tf.gather(weights, ends)
        top = tf.reduce_max(joint, axis=1)
        shares = tf.cumsum(tf.exp(joint - top[:, None]), axis=1)
        total = shares[:, -1]
        below = shares <= (tf.gather(thresholds, ends) * total)[:, None]
        chosen = 1 + tf.math.count_nonzero(below, axis=1)
        piece_lengths = tf.tensor_scatter_nd_update(piece_lengths, ends[:, None], chosen)
        after = (first + place + 1)[:, None]
        sums = tf.tensor_scatter_nd_update(sums, after, top + tf.math.log(total))
        return place + 1, sums, piece_lengths

    sums = tf.zeros([count + tf.size(begins, tf.int64)], tf.float64)
    _, _, piece_lengths = tf.while_loop(
        lambda place, *_: place < tf.reduce_max(lengths),
        step,
        (tf.constant(0, tf.int64), sums, tf.ones([count], tf.int64)),
    )
    return piece_lengths


def _trace(piece_lengths, begins, lengths):
    """Go back from each word's end by the lengths drawn: return which characters end a piece."""

    def step(first, ends, is_end):
        is_end = tf.tensor_scatter_nd_update(is_end, ends[:, None], tf.ones_like(ends, tf.bool))
        ends -= tf.gather(piece_lengths, ends)
        goes_on = ends >= first
        return tf.boolean_mask(first, goes_on), tf.boolean_mask(ends, goes_on), is_end

    state = (begins, begins + lengths - 1, tf.zeros_like(piece_lengths, tf.bool))
    _, _, is_end = tf.while_loop(
        lambda first, *_: tf.size(first) > 0,
        step,
        state,
        shape_invariants=(tf.TensorShape([None]),) * 3,
    )
    return is_end
