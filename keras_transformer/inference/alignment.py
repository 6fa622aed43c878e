"""Link target words to source words by what the decoder attended to (Vaswani et al. 2017,
section 3.2.3; appendix's pictures).
"""

import numpy as np

from pipelines.vocabularies.vocabulary import SPACE


def link_words(
    source_pieces: list[str], target_pieces: list[str], attention: np.ndarray
) -> list[tuple[int, int]]:
    """Link every target word to the source word that its pieces attended to most.

    Args:
        source_pieces: S strings; "▁" begins a word, the last is EOS.
        target_pieces: T strings, likewise.
        attention: (T, S).

    Returns:
        Pairs (source word, target word), both counted from 0, in the order of target words; none if
        a side has no words.
    """
    source_words = _words(source_pieces[:-1])
    target_words = _words(target_pieces[:-1])
    if not source_words or not target_words:
        return []
    attention = np.asarray(attention, np.float64)[: len(target_words), : len(source_words)]
    between = np.zeros((target_words[-1] + 1, source_words[-1] + 1))
    np.add.at(between, np.ix_(target_words, source_words), attention)
    return [(int(row.argmax()), word) for word, row in enumerate(between)]


def _words(pieces):
    """The word each piece belongs to."""
    number = -1
    words = []
    for piece in pieces:
        number += piece.startswith(SPACE) or number < 0
        words.append(number)
    return words
