"""The loop over tokens that every search of section 6.1 runs (Vaswani et al. 2017).

A search decides how hypotheses are extended. The loop calls the stepper, removes finished sentences
from the batch, and tells TensorFlow which shapes change from turn to turn.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

# Any nest of tensors with the same number of rows.
Rows = Any


def run(
    stepper, source: Rows, unfinished: dict[str, tf.Tensor], results: tuple, extend: Callable
) -> tuple:
    """Extend hypotheses until every sentence is finished or at its limit.

    Args:
        stepper: see `keras_transformer.decoding`.
        source: what the stepper needs of the source, B rows.
        unfinished: tensors by name with a row for each unfinished sentence, at first B: "limit"
            (B,); "sentence", its number in the batch, (B,); "ids", the tokens so far, (B, K, 1);
            and any others of the search.
        results: ids (B, ..., 1 or 0) and scores (B, ...) of all sentences; each turn makes the ids
            one longer.
        extend: (logits, state, position, unfinished, results) -> unfinished, results, remaining,
            parents. `remaining` are the rows that are still unfinished, ascending, (b',). `parents`
            are the hypotheses that the new ones extend, (b, K), or None if each extends itself.

    Returns:
        `results` after the last turn.
    """
    state = stepper.start(tf.size(unfinished["ids"]))

    def turn(position, unfinished, results, source, state):
        newest = unfinished["ids"][:, :, -1]
        logits, state, _ = stepper(newest, position, state, source)
        unfinished, results, remaining, parents = extend(
            logits, state, position, unfinished, results
        )
        state = _follow(state, remaining, parents)
        return take(unfinished, remaining), results, take_some(source, remaining), state

    growing = ({"ids": 2}, (len(results[0].shape) - 1, -1), stepper.growing)
    return turns(turn, unfinished, results, source, state, growing)


def turns(
    turn: Callable, unfinished: dict, results: tuple, source: Rows, state: Rows, growing: tuple
):
    """Run turns until every sentence is finished or at its limit, and return the results. A turn
    takes its number, `unfinished`, `results`, `source` and `state`, and returns the last four.
    `growing` has the axes along which `unfinished` (by name), `results` and `state` grow.
    """
    longest = tf.reduce_max(unfinished["limit"])
    axes = {**dict.fromkeys(unfinished, -1), **growing[0]}, growing[1], fixed(source), growing[2]

    def goes_on(number, unfinished, *_):
        # The limit ends the search of a model whose logits are NaN.
        return (tf.size(unfinished["sentence"]) > 0) & (number < longest)

    carried = (unfinished, results, source, state)
    _, _, results, _, _ = tf.while_loop(
        goes_on,
        lambda number, *before: (number + 1, *turn(number, *before)),
        (0, *carried),
        shape_invariants=(tf.TensorShape([]), *map(shape_invariants, carried, axes)),
    )
    return results


def take(state: Rows, rows: tf.Tensor) -> Rows:
    """Return a nest of tensors in which row i is row `rows[i]` of before."""
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), state)


def take_some(state: Rows, rows: tf.Tensor) -> Rows:
    """`take` for ascending rows without repetition. If these are all rows, nothing is copied."""
    tensors = tf.nest.flatten(state)
    if not tensors:
        return state
    gathered = tf.cond(
        tf.size(rows) == tf.shape(tensors[0])[0],
        lambda: [tf.identity(tensor) for tensor in tensors],
        lambda: [tf.gather(tensor, rows) for tensor in tensors],
    )
    return tf.nest.pack_sequence_as(state, gathered)


def fixed(state: Rows) -> Any:
    """Return the `growing` of tensors that do not grow."""
    return tf.nest.map_structure(lambda _: -1, state)


def shape_invariants(state: Rows, growing: Any) -> Any:
    """Return shapes for `tf.while_loop`: rows vary, and the axis in `growing`, unless it is -1."""

    def invariant(tensor, axis):
        sizes = enumerate(tensor.shape)
        return tf.TensorShape([None if place in (0, axis) else size for place, size in sizes])

    return tf.nest.map_structure(invariant, state, growing)


def _follow(state, remaining, parents):
    """Return the stepper's state of the remaining hypotheses: each continues its parent's."""
    if parents is None:
        return take_some(state, remaining)
    rows = remaining[:, None] * tf.shape(parents)[1] + tf.gather(parents, remaining)
    return take(state, tf.reshape(rows, [-1]))
