"""Texts as ids: long ones are cut, and nothing is lost; what a model reads and foresees."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from pipelines.batches import texts
from pipelines.special_ids import BOS, EOS
from pipelines.vocabularies.token_ids import TokenIds
from pipelines.vocabularies.vocabulary import learn

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=20)


@given(LENGTHS, st.integers(1, 20))
def test_a_text_is_cut_into_pieces_of_which_its_last_alone_is_short(lengths, most):
    lengths = np.array(lengths)
    pieces = texts.cut(lengths, most)
    expected = [min(most, length - start) for length in lengths for start in range(0, length, most)]
    assert pieces.tolist() == expected


def test_every_piece_of_a_line_is_kept_in_order():
    lines = ["two dogs run", "a", "a dog runs after two dogs and runs"]
    vocabulary = learn(lines * 20, 280)
    whole = texts.tokenized(lines, vocabulary, 100)
    short = texts.tokenized(lines, vocabulary, 4)
    assert len(whole) == len(lines) < len(short)
    assert short.lengths.max() == 4
    np.testing.assert_array_equal(short.flat, whole.flat)
    assert (whole.flat == EOS).sum() == len(lines)


def test_a_batch_is_the_text_and_the_text_shifted_behind_its_start():
    ids = TokenIds.of_lengths(np.array([7, 8, EOS, 9, EOS], np.uint16), [3, 2])
    batch = texts.examples(ids).batch(tf.constant([1, 0], tf.int64), [3])
    read, text, weights = (part.numpy() for part in batch)
    assert text.tolist() == [[9, EOS, 0], [7, 8, EOS]]
    assert read.tolist() == [[BOS, 9, EOS], [BOS, 7, 8]]
    assert weights.tolist() == [[1, 1, 0], [1, 1, 1]]
