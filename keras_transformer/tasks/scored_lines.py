"""Checks of the lines that a run will be scored on, before it trains."""

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.lengths import MAX_SOURCE_LENGTH
from pipelines.corpora import Corpus
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabularies.token_ids import slices
from pipelines.vocabularies.vocabulary import Vocabulary


def refuse_long_lines(
    corpus: Corpus, vocabulary: Vocabulary | SeparateVocabularies, validated: int
) -> None:
    """Refuse sources that a search, or the score of a text, does not take.

    Args:
        corpus: the text.
        vocabulary: what cuts it.
        validated: how many validation sentences are translated.

    Raises:
        ValueError: naming the split, and the first line that is too long.
    """
    for split, text, most in (
        ("validation", corpus.valid, validated),
        ("test", corpus.test, len(corpus.test)),
    ):
        parts = map(tf.constant, slices(text.sources[:most]))
        lengths = [vocabulary.source.tokenize(part).row_lengths().numpy() for part in parts]
        for index in np.flatnonzero(np.concatenate([[], *lengths]) > MAX_SOURCE_LENGTH)[:1]:
            raise ValueError(
                f"{text.place(index, f'the {split} split')} has more than the "
                f"{MAX_SOURCE_LENGTH:,} tokens allowed of a source. Split it, or leave it out."
            )
