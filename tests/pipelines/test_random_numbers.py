"""Permutations place by place: every thing once, like random ones, as restated in Python."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.random_numbers import FIRST, GOLDEN, ROUNDS, SECOND, key, permuted

WORD = 2**64


def mix(number):
    number = (number ^ number >> 30) * FIRST % WORD
    number = (number ^ number >> 27) * SECOND % WORD
    return number ^ number >> 31


def by_hand(place, size, key):
    """Swap or not, of one place, in Python's integers."""
    for number in range(1, ROUNDS + 1):
        round_key = mix((key + GOLDEN * number) % WORD)
        partner = (mix(round_key) % size - place) % size
        if mix((max(place, partner) + round_key) % WORD) >= WORD // 2:
            place = partner
    return place


def whole(size, keys, shuffle=permuted):
    """A permutation of 0 .. size-1 for each key, (keys, size)."""
    places = tf.tile(tf.range(size, dtype=tf.int64), [len(keys)])
    sizes = tf.fill([len(places)], tf.constant(size, tf.int64))
    return shuffle(places, sizes, tf.repeat(keys, size)).numpy().reshape(-1, size)


def rotated(places, sizes, keys):
    """The control: each key moves all things on by as many places, which keeps them in order."""
    return (places + tf.cast(keys % tf.cast(sizes, tf.uint64), tf.int64)) % sizes


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 2**40), st.integers(0, WORD - 1), st.data())
def test_it_is_swap_or_not_as_restated(size, key, data):
    places = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=5))
    found = permuted(
        tf.constant(places, tf.int64), tf.constant(size, tf.int64), tf.constant(key, tf.uint64)
    )
    assert found.numpy().tolist() == [by_hand(place, size, key) for place in places]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 2**63 - 1), max_size=3), st.integers(0, 2**70))
def test_a_key_is_the_seed_mixed_with_each_number(numbers, seed):
    [expected] = np.random.SeedSequence(seed).generate_state(1, np.uint64).tolist()
    for number in numbers:
        expected = mix((expected + GOLDEN * (number + 1)) % WORD)
    tensors = [tf.constant(number, tf.int64) for number in numbers]
    assert int(key(seed, *tensors)) == expected


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 300), st.integers(0, WORD - 1))
def test_every_thing_comes_once(size, key):
    [order] = whole(size, tf.constant([key], tf.uint64))
    assert sorted(order) == list(range(size))


def excess(counts):
    """How far counts are from equal, in standard deviations of chi-squared."""
    counts = np.asarray(counts, float).ravel()
    degrees = len(counts) - 1
    chi_squared = ((counts - counts.mean()) ** 2).sum() / counts.mean()
    return (chi_squared - degrees) / np.sqrt(2 * degrees)


def unlike_random(shuffle, keys, number=6000):
    """How far permutations of 4 and of 97 things by many keys are from random ones."""
    small = collections.Counter(map(tuple, whole(4, keys[:number], shuffle)))
    orders = whole(97, keys[: number // 10], shuffle)
    steps = np.bincount((np.diff(orders, axis=1) % 97).ravel(), minlength=97)[1:]
    fixed = (orders == np.arange(97)).sum(axis=1).mean()
    return {
        "distinct": number // 10 - len({tuple(order) for order in orders}),
        "orders of 4": excess([small[order] for order in itertools.permutations(range(4))]),
        "steps": excess(steps),
        "fixed": abs(fixed - 1) * np.sqrt(number // 10),
    }


def test_permutations_of_keys_that_count_are_like_random_ones():
    keys = key(7, tf.range(6000, dtype=tf.int64))
    found = unlike_random(permuted, keys)
    assert found.pop("distinct") == 0
    assert max(found.values()) < 4, found


def test_control_rotations_are_not():
    keys = tf.cast(tf.range(600), tf.uint64)
    found = unlike_random(rotated, keys, number=600)
    assert found["fixed"] > 4 or found["steps"] > 4 or found["orders of 4"] > 4, found


def test_neighbouring_things_part():
    """Of 20,000 things about 4 keep a neighbour within two places of them."""
    [order] = whole(20_000, tf.constant([3], tf.uint64))
    assert (np.abs(np.diff(order)) <= 2).sum() < 20
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 4 / np.sqrt(20_000)


@pytest.mark.parametrize("size", [1, 2])
def test_few_things_take_both_orders(size):
    orders = {tuple(order) for order in whole(size, key(1, tf.range(20, dtype=tf.int64)))}
    assert orders == set(itertools.permutations(range(size)))
