"""Texts of one language as ids: what a language model learns from."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from pipelines.batches.examples import Examples
from pipelines.special_ids import BOS, PAD
from pipelines.vocabularies.token_ids import TokenIds, packed, slices
from pipelines.vocabularies.vocabulary import Vocabulary


def tokenized(lines: Sequence[str], vocabulary: Vocabulary, max_length: int) -> TokenIds:
    """Lines as ids, each closed by EOS. A longer one is cut into several.

    Args:
        lines: the text.
        vocabulary: of it.
        max_length: tokens, EOS among them.
    """
    parts = (vocabulary.tokenize(tf.constant(part)) for part in slices(lines))
    ids = packed(parts, vocabulary.size)
    return TokenIds.of_lengths(ids.flat, cut(ids.lengths, max_length))


def cut(lengths: np.ndarray, most: int) -> np.ndarray:
    """Lengths of the pieces that sequences are cut into, each but a sequence's last of `most`.

    Args:
        lengths: of the sequences, each at least 1, integers.
        most: at least 1.
    """
    counts = -(-lengths // most)
    pieces = np.full(counts.sum(), most)
    pieces[np.cumsum(counts) - 1] = lengths - (counts - 1) * most
    return pieces


def examples(texts: TokenIds) -> Examples:
    """Texts as `Examples` of language modelling.

    A batch is `(input, text, weights)`: int32 (B, T), (B, T) and float32 (B, T). The input is the
    text shifted right after BOS. Weights are 1.0 where the text is no padding.
    """
    return Examples({"text": texts}, {}, _foreseen)


def _foreseen(columns):
    text = columns["text"]
    shifted = tf.pad(text[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
    return shifted, text, tf.cast(text != PAD, tf.float32)
