"""What the searches carry from step to step, row by row: the plumbing of section 6.1's decoding."""

import tensorflow as tf


def take(state, rows):
    """Let row i continue what row `rows[i]` was.

    Args:
        state: any nest of tensors with as many rows.
        rows: integers.
    """
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), state)


def take_some(state, rows):
    """`take` of ascending rows; where that is all of them, nothing is moved.

    Args:
        state: any nest of tensors with as many rows.
        rows: integers, ascending, none twice.
    """
    tensors = tf.nest.flatten(state)
    if not tensors:
        return state
    is_all = tf.size(rows) == tf.shape(tensors[0])[0]
    taken = tf.cond(
        is_all,
        lambda: [tf.identity(tensor) for tensor in tensors],
        lambda: [tf.gather(tensor, rows) for tensor in tensors],
    )
    return tf.nest.pack_sequence_as(state, taken)


def any_rows(state):
    """Shape invariants for `tf.while_loop`: the number of rows may change from turn to turn."""
    return tf.nest.map_structure(lambda tensor: tf.TensorShape([None, *tensor.shape[1:]]), state)


def growing(past):
    """The same for a cache: the number of tokens may change, too, and what is known of the rest,
    heads and their width, stays.

    Args:
        past: tensors of (rows, h, t, d), and those that do not grow, of (rows, S).
    """

    def invariant(shape):
        return [None, shape[1], None, *shape[3:]] if len(shape) > 2 else [None, *shape[1:]]

    return tf.nest.map_structure(lambda tensor: tf.TensorShape(invariant(tensor.shape)), past)
