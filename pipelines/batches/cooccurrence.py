"""How often pieces come in the same pairs of sentences (Vaswani et al. 2017, section 3.4: source
and target share one table of embeddings).
"""

from collections.abc import Sequence

import numpy as np

from pipelines.vocabularies.token_ids import TokenIds

# A few matrices of all pieces by all pieces must fit into memory: 1 GB each of this many.
MOST_PIECES = 16000
MOST_PAIRS = 200000


def check_size(pieces: int) -> None:
    """Refuse to count pairs of too many pieces.

    Raises:
        ValueError: if there are more than 16,000.
    """
    if pieces > MOST_PIECES:
        raise ValueError(
            f"--embedding_initialization=cooccurrence counts pairs of at most {MOST_PIECES:,} "
            f"pieces. Received: {pieces:,}. Pass --embedding_initialization=drawn, or a smaller "
            "--vocabulary_size."
        )


def cooccurrences(
    sides: Sequence[TokenIds], offsets: Sequence[int], vocabulary_size: int
) -> np.ndarray:
    """How often two pieces come in the same pair, on whichever side.

        C_ij = sum over the pairs that have i and j of 1 / (number of different pieces in the pair)

    Args:
        sides: sources and targets, N sentences each. Of more than 200,000 pairs, so many from all
            parts of the text are counted.
        offsets: number of the piece that has id 0 on each side: 0 and 0 where they share a
            vocabulary, 0 and its size where each has its own.
        vocabulary_size: pieces on a side.

    Returns:
        float32, (V, V), symmetric, 0 on the diagonal; V is the number of pieces on both sides.

    Raises:
        ValueError: if there are more than 16,000 pieces.
    """
    size = vocabulary_size + max(offsets)
    check_size(size)
    counts = np.zeros((size, size), np.float32)
    number = len(sides[0])
    for i in np.linspace(0, number - 1, min(number, MOST_PAIRS)).astype(int):
        ids = [side[i].astype(int) + offset for side, offset in zip(sides, offsets, strict=True)]
        pieces = np.unique(np.concatenate(ids))
        if len(pieces):
            counts[np.ix_(pieces, pieces)] += 1 / len(pieces)
    np.fill_diagonal(counts, 0)
    return counts
