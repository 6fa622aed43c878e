"""Texts with a label each: what a classifier learns from (Devlin et al. 2019, "BERT: Pre-training
of Deep Bidirectional Transformers for Language Understanding", section 4.1).
"""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from pipelines.batches.examples import Examples
from pipelines.batches.marked_texts import closed, opened
from pipelines.vocabularies.token_ids import TokenIds, packed, slices
from pipelines.vocabularies.vocabulary import Vocabulary


def tokenized(lines: Sequence[str], vocabulary: Vocabulary, max_length: int) -> TokenIds:
    """Texts as ids, each closed by the mark of the end. The end of a longer one is cut.

    Args:
        lines: the texts.
        vocabulary: with `marks`.
        max_length: tokens, the mark of the end among them.
    """
    parts = (vocabulary.tokenize(tf.constant(part)) for part in slices(lines))
    return packed((closed(part, vocabulary.marks, max_length) for part in parts), vocabulary.size)


def examples(texts: TokenIds, labels: np.ndarray, vocabulary: Vocabulary) -> Examples:
    """Texts as `Examples` of classification.

    A batch is `((tokens, segments), labels, weights)`: int32 (B, T) twice, int32 (B,), and float32
    (B,), all 1.0; segments are 0.

    Args:
        texts: from `tokenized`.
        labels: numbers of their labels, integers (examples,).
        vocabulary: with `marks`.
    """

    def to_batch(columns):
        tokens = opened(columns["text"], vocabulary.marks)
        labels = tf.cast(columns["label"], tf.int32)
        return (tokens, tf.zeros_like(tokens)), labels, tf.ones(tf.shape(labels))

    return Examples({"text": texts}, {"label": np.asarray(labels, np.int32)}, to_batch)


def numbers_of(
    given: Sequence[str], labels: Sequence[str], place: Callable[[int], str]
) -> np.ndarray:
    """The numbers of labels, int32 (examples,).

    Args:
        given: a label for each text.
        labels: all labels that are known.
        place: where the label of an index stands, for the error: `ParallelText.place`.

    Raises:
        ValueError: naming the first label that is not known, and its place.
    """
    known = {label: number for number, label in enumerate(labels)}
    if unseen := [label for label in dict.fromkeys(given) if label not in known]:
        more = f" and {len(unseen) - 1} more" if unseen[1:] else ""
        raise ValueError(
            f"every label must be seen in training, where {len(known)} are. Received: "
            f"{place(given.index(unseen[0]))} has {unseen[0]!r}{more}. Add such texts to the "
            "training side, or leave them out."
        )
    return np.array([known[label] for label in given], np.int32)
