"""How often pieces come in the same pairs of sentences (Vaswani et al. 2017, section 3.4: source
and target share one table of embeddings).
"""

import itertools
from collections.abc import Sequence

import numpy as np

from pipelines.token_ids import TokenIds

# A few matrices of all pieces by all pieces must fit into memory: 1 GB each of this many.
MOST_PIECES = 16000
MOST_PAIRS = 200000
# Entries that are counted at once.
CHUNK = 1 << 22


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
        sides: sources and targets, N sentences each; of more than
            200,000 pairs, so many of all parts of the text are counted.
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
    which = []
    count = len(sides[0])
    keep = np.zeros(count, bool)
    keep[np.linspace(0, count - 1, min(count, MOST_PAIRS)).astype(int)] = True
    for side, offset in zip(sides, offsets, strict=True):
        kept = side if keep.all() else side.where(keep)
        pair = np.repeat(np.arange(len(kept)), kept.lengths)
        which.append(pair * size + offset + kept.flat)
    pair, piece = np.divmod(np.unique(np.concatenate(which)), size)
    sizes = np.bincount(pair)
    first = np.cumsum(sizes) - sizes
    counts = np.zeros((size, size), np.float32)
    # Entry i of a pair meets each of its entries.
    meetings = np.cumsum(sizes[pair])
    for begin, end in _chunks(meetings):
        partners = sizes[pair[begin:end]]
        within = np.arange(partners.sum()) - np.repeat(np.cumsum(partners) - partners, partners)
        others = piece[np.repeat(first[pair[begin:end]], partners) + within]
        weights = np.repeat((1 / partners).astype(np.float32), partners)
        np.add.at(counts, (np.repeat(piece[begin:end], partners), others), weights)
    np.fill_diagonal(counts, 0)
    return counts


def _chunks(meetings):
    """Where to cut entries, so that few meetings come at once."""
    total = meetings[-1] if len(meetings) else 0
    cuts = np.searchsorted(meetings, np.arange(CHUNK, total, CHUNK))
    cuts = np.unique(np.concatenate([[0], cuts, [len(meetings)]]))
    return itertools.pairwise(cuts)
