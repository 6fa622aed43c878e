"""Random numbers by counting: each follows from a seed and its place, and from nothing else.

So what is drawn for a place does not depend on how many were drawn before it, nor on its neighbours
in a batch. It is arithmetic on tensors, and so a part of any graph.
"""

import numpy as np
import tensorflow as tf

# The constants of splitmix64 (Steele, Lea and Flood 2014).
GOLDEN = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB


def key(seed: int, *numbers) -> tf.Tensor:
    """A random 64-bit number that follows from a seed and some numbers.

    Args:
        seed: at least 0, of any size.
        *numbers: integers at least 0, or int64 tensors of them, of shapes that broadcast.

    Returns:
        uint64 tensor of the broadcast shape.
    """
    [start] = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    mixed = tf.constant(start)
    for number in numbers:
        mixed = mix(mixed + GOLDEN * tf.cast(number + 1, tf.uint64))
    return mixed


def mix(number: tf.Tensor) -> tf.Tensor:
    """The last step of splitmix64: each bit of the result depends on each bit of the number.

    Args:
        number: uint64, of any shape.

    Returns:
        uint64 of the same shape.
    """
    number = (number ^ tf.bitwise.right_shift(number, 30)) * FIRST
    number = (number ^ tf.bitwise.right_shift(number, 27)) * SECOND
    return number ^ tf.bitwise.right_shift(number, 31)
