"""The loop over tokens that every search of section 6.1 runs (Vaswani et al. 2017).

A search says how hypotheses are extended. The loop calls the stepper, lets finished sentences leave
the batch, and tells TensorFlow which shapes change from turn to turn.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

# Any nest of tensors with the same number of rows.
Rows = Any


def run(
    stepper, source: Rows, searched: dict[str, tf.Tensor], found: tuple, extend: Callable
) -> tuple:
    """Extend hypotheses until every sentence is finished or at its limit.

    Args:
        stepper: see `keras_transformer.decoding`.
        source: what the stepper needs of the source, B rows.
        searched: what the search carries of each unfinished sentence, B rows: "limit" (B,),
            "sentence", its number in the batch, (B,), "ids", the tokens so far, (B, K, 1), and what
            else the search needs.
        found: ids (B, ..., 1 or 0) and scores (B, ...) of all sentences; a turn makes the ids one
            longer.
        extend: (logits, state, position, searched, found) -> searched, found, going_on, parents.
            `going_on` are the places of the sentences that are not finished, ascending, (b',).
            `parents` are the hypotheses that the new ones extend, (b, K), or None if each extends
            itself.

    Returns:
        `found` after the last turn.
    """
    state = stepper.start(tf.size(searched["ids"]))

    def turn(position, searched, found, source, state):
        newest = searched["ids"][:, :, -1]
        logits, state, _ = stepper(newest, position, state, source)
        searched, found, going_on, parents = extend(logits, state, position, searched, found)
        state = _follow(state, going_on, parents)
        return take(searched, going_on), found, take_some(source, going_on), state

    growing = ({"ids": 2}, (len(found[0].shape) - 1, -1), stepper.growing)
    return turns(turn, searched, found, source, state, growing)


def turns(turn: Callable, searched: dict, found: tuple, source: Rows, state: Rows, growing: tuple):
    """What is found when every sentence is finished, or as many turns are over as the longest limit
    has tokens. A turn takes its number and the four that follow, and gives these four anew.
    `growing` says which axes of what is searched (by name), found and of the state grow.
    """
    longest = tf.reduce_max(searched["limit"])
    axes = {**dict.fromkeys(searched, -1), **growing[0]}, growing[1], fixed(source), growing[2]

    def unfinished(number, searched, *others):
        # The second half ends the search of a model whose logits are not numbers.
        return (tf.size(searched["sentence"]) > 0) & (number < longest)

    carried = (searched, found, source, state)
    _, _, found, _, _ = tf.while_loop(
        unfinished,
        lambda number, *before: (number + 1, *turn(number, *before)),
        (0, *carried),
        shape_invariants=(tf.TensorShape([]), *map(shape_invariants, carried, axes)),
    )
    return found


def take(state: Rows, rows: tf.Tensor) -> Rows:
    """Let row i continue what row `rows[i]` was, in any nest of tensors with equal rows."""
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), state)


def take_some(state: Rows, rows: tf.Tensor) -> Rows:
    """`take` of ascending rows, none twice. Where that is all of them, nothing is moved."""
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


def fixed(state: Rows) -> Any:
    """The `growing` of tensors that do not grow."""
    return tf.nest.map_structure(lambda _: -1, state)


def shape_invariants(state: Rows, growing: Any) -> Any:
    """Shapes for `tf.while_loop`: rows change, and the axis that `growing` names, -1 for none."""

    def invariant(tensor, axis):
        sizes = list(tensor.shape)
        sizes[0] = None
        if axis >= 0:
            sizes[axis] = None
        return tf.TensorShape(sizes)

    return tf.nest.map_structure(invariant, state, growing)


def _follow(state, going_on, parents):
    """The stepper's state of the hypotheses that go on: each takes over that of its parent."""
    if parents is None:
        return take_some(state, going_on)
    rows = going_on[:, None] * tf.shape(parents)[1] + tf.gather(parents, going_on)
    return take(state, tf.reshape(rows, [-1]))
