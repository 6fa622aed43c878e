"""Pictures that are moved: whereto is counted, not drawn one after another."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from pipelines.batches import batching, shifted_pictures
from pipelines.corpora.images import Split
from pipelines.random_numbers import key

RNG = np.random.default_rng(3)
PIXELS = RNG.integers(1, 256, (40, 5, 4, 2), np.uint8)
SPLIT = Split(PIXELS, np.arange(40, dtype=np.int32) % 3)


def moved(picture, down, right):
    """A picture moved by hand, pixel by pixel; what comes in is 0."""
    result = np.zeros_like(picture)
    height, width, _ = picture.shape
    for row in range(height):
        for column in range(width):
            if 0 <= row - down < height and 0 <= column - right < width:
                result[row, column] = picture[row - down, column - right]
    return result


def shift_of(before, after, most):
    """The one shift that makes a picture of another."""
    reach = range(-most, most + 1)
    found = [
        (down, right)
        for down in reach
        for right in reach
        if np.array_equal(moved(before, down, right), after)
    ]
    assert len(found) == 1
    return found[0]


def test_each_shift_is_one_of_all_and_as_likely():
    many = np.tile(PIXELS[:1], (2700, 1, 1, 1))
    keys = key(4, np.arange(2700))
    found = shifted_pictures.shifted(tf.constant(many), 1, keys).numpy()
    counts = collections.Counter(shift_of(PIXELS[0], one, 1) for one in found)
    assert len(counts) == 9
    # Chi-squared of 8 degrees of freedom: 26 comes once in a thousand.
    assert sum((count - 300) ** 2 / 300 for count in counts.values()) < 26


def test_a_shift_is_a_picture_s_own_whatever_stands_beside_it():
    keys = key(4, np.arange(40))
    together = shifted_pictures.shifted(tf.constant(PIXELS), 2, keys)
    alone = shifted_pictures.shifted(tf.constant(PIXELS[7:8]), 2, keys[7:8])
    np.testing.assert_array_equal(alone[0], together[7])


def batches(seed=1, start=0, most=1):
    examples = shifted_pictures.examples(SPLIT, positions=2, most=most, seed=seed)
    return batching.training_batches(examples, 20, seed=1).dataset(start).take(8 - start)


@pytest.fixture(scope="module")
def stream():
    return [[part.numpy() for part in batch] for batch in batches()]


def test_a_stream_that_goes_on_has_the_same_shifts_and_another_seed_has_others(stream):
    rest = [[part.numpy() for part in batch] for batch in batches(start=3)]
    for one, other in zip(stream[3:], rest, strict=True):
        for left, right in zip(one, other, strict=True):
            np.testing.assert_array_equal(left, right)
    others = [batch[0].numpy() for batch in batches(seed=2)]
    assert not np.array_equal(others[0], stream[0][0])


def test_an_epoch_holds_each_picture_once_and_moves_it_anew(stream):
    def shifts(epoch):
        found = {}
        for images, labels, weights in epoch:
            assert weights.tolist() == [1] * 10
            for image, label in zip(images, labels, strict=True):
                after = np.rint(image * 255).astype(np.uint8)
                [number] = [
                    one
                    for one in range(40)
                    if any(
                        np.array_equal(moved(PIXELS[one], down, right), after)
                        for down in (-1, 0, 1)
                        for right in (-1, 0, 1)
                    )
                ]
                assert label == SPLIT.classes[number]
                found[number] = shift_of(PIXELS[number], after, 1)
        assert len(found) == 40
        return found

    first = shifts(stream[:4])
    second = shifts(stream[4:])
    different = sum(first[number] != second[number] for number in range(40))
    # 8 of 9 on average.
    assert different > 25


def test_what_is_measured_is_not_moved():
    examples = shifted_pictures.examples(SPLIT, positions=2)
    images = np.concatenate(
        [one.numpy() for one, _, _ in batching.evaluation_batches(examples, 20)]
    )
    np.testing.assert_array_equal(images, PIXELS.astype(np.float32) / np.float32(255))
