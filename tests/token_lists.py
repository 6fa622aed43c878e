"""Outputs of the pipelines as lists that a test can compare, and their error messages."""

import itertools

import numpy as np
import pytest

from pipelines.vocabularies.token_ids import TokenIds

# Text to learn a small vocabulary from.
ENGLISH = ["the house is big and the lamp is small", "turn off the lights in the kitchen"] * 3
GERMAN = ["das Haus ist groß und die Lampe ist klein", "schalte die Lichter in der Küche aus"] * 3


def packed(sentences, dtype=np.uint16):
    """Lists of ids as they are trained on."""
    sentences = list(sentences)
    flat = np.array([*itertools.chain(*sentences)], dtype)
    return TokenIds.of_lengths(flat, [len(sentence) for sentence in sentences])


def random_sentences(random, count, longest):
    """Packed ids of sentences of at least two tokens."""
    lengths = random.integers(2, longest + 1, count)
    return TokenIds.of_lengths(random.integers(4, 50, lengths.sum()).astype(np.uint16), lengths)


def listed(ids):
    """Packed ids as lists."""
    return [sentence.tolist() for sentence in ids]


def pairs_of(text):
    """The pairs of a `ParallelText`."""
    return list(zip(text.sources, text.targets, strict=True))


def complaint(error_type, call, *arguments, **options):
    """The line of the error that a call ends with, which is of exactly this type."""
    with pytest.raises(error_type) as caught:
        call(*arguments, **options)
    assert type(caught.value) is error_type
    assert "\n" not in str(caught.value)
    return str(caught.value)


def assert_same_batches(batches, expected):
    """Array by array, dtypes among them."""
    for batch, reference in zip(batches, expected, strict=True):
        for left, right in zip(batch, reference, strict=True):
            np.testing.assert_array_equal(left, right, strict=True)
