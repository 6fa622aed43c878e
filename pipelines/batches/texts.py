"""Pairs of sentences, and texts of one language, as ids: what a translator and a language model
learn from (Vaswani et al. 2017, section 5.1).
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from pipelines.batches.examples import Examples
from pipelines.special_ids import BOS, PAD
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.segmentation import Variation
from pipelines.vocabularies.token_ids import TokenIds, packed, slices
from pipelines.vocabularies.vocabulary import Vocabulary

# A few matrices (pieces, pieces) must fit into memory: with so many pieces, one takes 1 GB.
MOST_PIECES = 16000
MOST_PAIRS = 200000


@dataclasses.dataclass(frozen=True, eq=False)
class TokenizedPairs:
    """Pairs as ids: sentence i of one side translates sentence i of the other, each closed by EOS;
    how many were dropped for their length; and which of all pairs are left, booleans, None: all.
    """

    sources: TokenIds
    targets: TokenIds
    too_long: int = 0
    is_kept: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.sources)

    def up_to(self, max_length: int) -> "TokenizedPairs":
        """Return the pairs of at most `max_length` tokens a side; `too_long` counts the others."""
        keep = (self.sources.lengths <= max_length) & (self.targets.lengths <= max_length)
        if keep.all():
            return self
        return TokenizedPairs(
            self.sources.where(keep),
            self.targets.where(keep),
            self.too_long + int(np.count_nonzero(~keep)),
            keep,
        )

    def of_those_kept(self, numbers: np.ndarray | None) -> np.ndarray | None:
        """Return the numbers of the pairs that are left, from numbers for all pairs."""
        return numbers if numbers is None or self.is_kept is None else numbers[self.is_kept]

    def examples(self, variations: Mapping[str, Variation] | None = None) -> Examples:
        """Return the pairs as `Examples` of translation, with variations of "source" and "target",
        if any.

        A batch is `((source, target_input), target, weights)`: int32 (B, S), (B, T), (B, T) and
        float32 (B, T). The target input is the target shifted right after BOS. Weights are 1.0
        where the target is no padding.
        """
        sides = {"source": self.sources, "target": self.targets}
        return Examples(sides, {}, _translation, variations=variations or {})


def tokenize_pairs(
    text, vocabulary: Vocabulary | SeparateVocabularies, max_length: int | None = None
) -> TokenizedPairs:
    """Turn a `ParallelText` into ids, or read those of records, and drop pairs with a side above
    `max_length` tokens, EOS among them; None keeps every pair.
    """
    if hasattr(text, "pairs"):
        return text.pairs(max_length)
    pairs = TokenizedPairs(
        token_ids(text.sources, vocabulary.source), token_ids(text.targets, vocabulary.target)
    )
    return pairs if max_length is None else pairs.up_to(max_length)


def tokenized(lines: Sequence[str], vocabulary: Vocabulary, max_length: int) -> TokenIds:
    """Return lines as ids closed by EOS. Lines above `max_length` are cut into several."""
    ids = token_ids(lines, vocabulary)
    return TokenIds.of_lengths(ids.flat, cut(ids.lengths, max_length))


def token_ids(lines: Sequence[str], vocabulary: Vocabulary) -> TokenIds:
    """Return lines as ids, each closed by EOS."""
    parts = (vocabulary.tokenize(tf.constant(part)) for part in slices(lines))
    return packed(parts, vocabulary.size)


def cut(lengths: np.ndarray, most: int) -> np.ndarray:
    """Return the lengths of the parts, at most `most`, of sequences of these lengths."""
    counts = -(-lengths // most)
    pieces = np.full(counts.sum(), most)
    pieces[np.cumsum(counts) - 1] = lengths - (counts - 1) * most
    return pieces


def examples(texts: TokenIds) -> Examples:
    """Return texts as `Examples` of language modelling.

    A batch is `(input, text, weights)`: int32 (B, T), (B, T) and float32 (B, T). The input is the
    text shifted right after BOS. Weights are 1.0 where the text is no padding.
    """
    return Examples({"text": texts}, {}, lambda columns: _shifted(columns["text"]))


def _translation(columns):
    target_input, target, weights = _shifted(columns["target"])
    return (columns["source"], target_input), target, weights


def _shifted(text):
    shifted = tf.pad(text[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
    return shifted, text, tf.cast(text != PAD, tf.float32)


def cooccurrences(
    sides: Sequence[TokenIds], offsets: Sequence[int], vocabulary_size: int
) -> np.ndarray:
    """Count how often two pieces come in the same pair, on either side (Vaswani et al. 2017,
    section 3.4: source and target share one table of embeddings).

        C_ij = sum over the pairs that have i and j of 1 / (number of different pieces in the pair)

    Of more than 200,000 pairs, so many are counted, evenly spaced in the text. `offsets` are the
    rows of the pieces with id 0 on each side: 0 and 0 where the sides share a vocabulary, 0 and its
    size where each has its own. Returns float32 (V, V), symmetric, 0 on the diagonal; V is
    the number of pieces on both sides.
    """
    size = vocabulary_size + max(offsets)
    check_pieces(size)
    counts = np.zeros((size, size), np.float32)
    number = len(sides[0])
    for i in np.linspace(0, number - 1, min(number, MOST_PAIRS)).astype(int):
        ids = [side[i].astype(int) + offset for side, offset in zip(sides, offsets, strict=True)]
        pieces = np.unique(np.concatenate(ids))
        if len(pieces):
            counts[np.ix_(pieces, pieces)] += 1 / len(pieces)
    np.fill_diagonal(counts, 0)
    return counts


def check_pieces(pieces: int) -> None:
    """Refuse to count pairs of more than 16,000 pieces."""
    if pieces > MOST_PIECES:
        raise ValueError(
            f"--embedding_initialization=cooccurrence counts pairs of at most {MOST_PIECES:,} "
            f"pieces. Received: {pieces:,}. Pass --embedding_initialization=drawn, or a smaller "
            "--vocabulary_size."
        )
