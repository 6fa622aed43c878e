"""Checks of the lines that a run will be scored on, before it trains."""

import tensorflow as tf

from keras_transformer.translator.batches import checked_lengths
from pipelines.corpora import Corpus
from pipelines.vocabularies import SeparateVocabularies
from pipelines.vocabulary import Vocabulary


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
    splits = {"validation": corpus.valid.sources[:validated], "test": corpus.test.sources}
    for split, lines in splits.items():
        checked_lengths(
            lambda some: (
                vocabulary.source.tokenize(tf.constant(some)).row_lengths().numpy().tolist()
            ),
            lines,
            f"source {{}} of the {split} split",
            "Split it, or leave it out.",
        )
