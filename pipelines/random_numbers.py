"""Counter-based random numbers: each depends on a seed and its place alone; and random orders,
computed one place at a time.

So a number does not depend on how many were drawn before it, nor on its neighbours in a batch. All
of it is arithmetic on tensors, which any graph can hold.
"""

from typing import Any

import numpy as np

# `tf.Tensor`: TensorFlow is imported only where it is needed.
Tensor = Any
# The constants of splitmix64 (Steele, Lea and Flood 2014).
GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB
# With 24 rounds a place is moved by none of them with probability 2^-24.
ROUNDS = 24


def key(seed: int, *numbers) -> Tensor:
    """Return a random uint64 that depends on a seed, at least 0, and on some numbers: integers of
    at least 0, or int64 tensors of shapes that broadcast.
    """
    import tensorflow as tf

    [start] = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    mixed = tf.constant(start)
    for number in numbers:
        mixed = mix(mixed + GOLDEN * tf.cast(number + 1, tf.uint64))
    return mixed


def mix(number: Tensor | np.ndarray) -> Tensor | np.ndarray:
    """The last step of splitmix64: each bit of the result depends on every bit of the number."""
    if isinstance(number, np.ndarray):
        shifted = np.right_shift
    else:
        from tensorflow import bitwise

        shifted = bitwise.right_shift
    number = (number ^ shifted(number, 30)) * FIRST
    number = (number ^ shifted(number, 27)) * SECOND
    return number ^ shifted(number, 31)


def nth_draw(keys: Tensor, number: int) -> Tensor:
    """Return random draw `number` of each key, independent of its other draws."""
    import tensorflow as tf

    return mix(keys + GOLDEN * tf.constant(number, tf.uint64))


def permuted(places: Tensor, size: Tensor, key: Tensor) -> Tensor:
    """Return where a random permutation of 0 .. size-1 takes some places.

    "Swap or not" (Hoang, Morris and Rogaway 2012, "An Enciphering Scheme Based on a Card Shuffle"):
    in each round a random number k pairs place x with place (k - x) mod n, and a random bit of the
    pair decides whether the two swap. Each round permutes 0 .. n-1, so all rounds together do, for
    any n. The cost of a place does not depend on n.

    TensorFlow's `tf.random.experimental.index_shuffle` is not good enough: its four rounds leave
    38 % too many items in place, and consecutive seeds give 256 orders of up to 65,536 items.

    `places` and the result are int64 (L,), from 0 to size - 1. `key`, uint64, and `size`, int64,
    are scalars or (L,): places with equal key and size belong to one permutation.
    """
    import tensorflow as tf

    places = tf.cast(places, tf.uint64)
    size = tf.reshape(tf.cast(size, tf.uint64), [-1])
    rounds = tf.range(1, ROUNDS + 1, dtype=tf.int64)[:, None]
    keys = mix(tf.reshape(key, [-1]) + GOLDEN * tf.cast(rounds, tf.uint64))
    # `size` is added because k - x must not be negative.
    pairings = tf.math.floormod(mix(keys), size) + size

    def swap(number, places):
        partners = tf.math.floormod(pairings[number] - places, size)
        coins = mix(tf.maximum(places, partners) + keys[number])
        return number + 1, tf.where(coins < 2**63, places, partners)

    # A loop keeps the graph small, which each dataset optimizes again.
    _, places = tf.while_loop(lambda number, _: number < ROUNDS, swap, (0, places))
    return tf.cast(places, tf.int64)
