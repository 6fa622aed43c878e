"""Examples in columns: rectangles hold their rows, and what is no translation makes batches too."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.batches.batching import Examples, evaluation_batches, training_batches
from pipelines.batches.examples import padded
from pipelines.vocabularies.token_ids import TokenIds

SENTENCES = st.lists(st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=8), min_size=1)
DTYPES = st.sampled_from([np.uint16, np.int32])


def packed(sentences, dtype=np.uint16):
    flat = np.array([*itertools.chain(*sentences)], dtype)
    return TokenIds.of_lengths(flat, [len(sentence) for sentence in sentences])


def by_hand(sentences, rows, length):
    return [sentences[row] + [0] * (length - len(sentences[row])) for row in rows]


@settings(deadline=None, max_examples=50)
@given(SENTENCES, DTYPES, st.data())
def test_a_rectangle_holds_its_rows_and_zeros_behind_them(sentences, dtype, data):
    rows = data.draw(st.lists(st.integers(0, len(sentences) - 1), min_size=1))
    length = max(len(sentences[row]) for row in rows) + data.draw(st.integers(0, 5))
    ids = packed(sentences, dtype)
    rectangle = padded(ids.flat, ids.starts, tf.constant(rows, tf.int64), length).numpy()
    assert rectangle.tolist() == by_hand(sentences, rows, length)
    assert (rectangle.shape, rectangle.dtype) == ((len(rows), length), np.int32)


def test_what_is_read_past_a_sentence_would_be_its_neighbour():
    """The control: in the packed row no zero stands between two sentences."""
    sentences = [[5, 6], [7, 8, 9]]
    ids = packed(sentences)
    rectangle = padded(ids.flat, ids.starts, tf.constant([0], tf.int64), 3)
    assert rectangle.numpy().tolist() == by_hand(sentences, [0], 3) == [[5, 6, 0]]
    assert ids.flat[:3].tolist() == [5, 6, 7]


def images(number=10, positions=4):
    """Image i is all i; its class is i modulo 3, and class 0 counts as any."""
    pixels = np.repeat(np.arange(number, dtype=np.float32), 12).reshape(number, 2, 2, 3)

    def to_batch(columns):
        return columns["pixels"], columns["label"], tf.ones_like(columns["label"], tf.float32)

    return Examples({}, {"pixels": pixels, "label": np.arange(number) % 3}, to_batch, positions)


def test_images_are_one_bucket_of_as_many_as_their_positions_allow():
    batches = training_batches(images(), batch_tokens=12, seed=1)
    assert batches.describe() == (
        "3 updates an epoch, of 12 input tokens each, in 1 shape, 0.0% padding"
    )
    dataset = batches.dataset()
    assert [spec.shape for spec in dataset.element_spec] == [(3, 2, 2, 3), (3,), (3,)]
    stream = [*dataset.take(10).as_numpy_iterator()]
    for pixels, labels, weights in stream:
        assert (pixels == pixels[:, :1, :1, :1]).all()
        assert labels.tolist() == (pixels[:, 0, 0, 0] % 3).tolist()
        assert weights.tolist() == [1.0] * 3
    come = np.concatenate([pixels[:, 0, 0, 0] for pixels, *_ in stream])
    for lap in come.reshape(3, 10):
        assert sorted(lap) == list(range(10))


def test_every_image_is_evaluated_once_and_in_order():
    batches = [*evaluation_batches(images(), batch_tokens=12).as_numpy_iterator()]
    assert [len(labels) for _, labels, _ in batches] == [3, 3, 3, 1]
    assert np.concatenate([pixels[:, 0, 0, 0] for pixels, *_ in batches]).tolist() == [*range(10)]


def test_text_and_a_number_beside_it_stay_together():
    """One ragged side: sentence i is i times the id 100 + i, its number i."""
    sentences = [[100 + i] * i for i in range(1, 13)]

    def to_batch(columns):
        text = columns["text"]
        return text, columns["number"], tf.cast(text != 0, tf.float32)

    examples = Examples({"text": packed(sentences)}, {"number": np.arange(1, 13)}, to_batch)
    batches = training_batches(examples, batch_tokens=24, seed=1, most_padding=0)
    assert batches.buckets.lengths.shape[1] == 1
    for text, number, weights in batches.dataset().take(20).as_numpy_iterator():
        bucket = batches.buckets.lengths[:, 0].tolist().index(text.shape[1])
        assert len(text) == batches.buckets.batch_sizes[bucket]
        for row, one, weight in zip(text, number, weights, strict=True):
            assert row.tolist() == [100 + one] * one + [0] * (len(row) - one)
            assert weight.sum() == one


@pytest.mark.parametrize(
    ("ragged", "fixed", "received"),
    [
        ({"a": packed([[1], [2]])}, {"b": np.zeros(3)}, "a 2, b 3"),
        ({}, {}, "no column"),
    ],
)
def test_columns_of_different_lengths_are_refused(ragged, fixed, received):
    with pytest.raises(ValueError, match=rf"^Columns must .* Received: {received}\. Pass columns"):
        Examples(ragged, fixed, dict)
