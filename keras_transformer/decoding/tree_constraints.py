"""Constraints that let a parser (Vaswani et al. 2017, section 6.3) write well-formed trees only."""

import dataclasses
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.candidates import FREE
from keras_transformer.decoding.constraints import Constraints, of_rows
from pipelines.special_ids import EOS, PAD


class State(NamedTuple):
    """What hypotheses have written, (rows,) each: the number of open constituents, whether a root
    was opened, the label of the innermost open constituent (meaningless if there is none), whether
    that has a leaf, and the number of leaves.
    """

    depth: tf.Tensor
    has_root: tf.Tensor
    label: tf.Tensor
    has_leaf: tf.Tensor
    leaves: tf.Tensor

    def is_over(self, left: tf.Tensor) -> tf.Tensor:
        """Return whether only EOS can come, (rows,), if `left` (rows,) leaves are left."""
        return (self.depth <= 0) & (self.has_root | (left <= 0))

    def fewest_tokens(self, left: tf.Tensor) -> tf.Tensor:
        """Return the fewest tokens that complete the tree, EOS included, (rows,)."""
        root = tf.where(self.has_root, 0, 2)
        return tf.where(
            self.is_over(left), 1, tf.maximum(left, 0) + tf.maximum(self.depth, 0) + root + 1
        )


@dataclasses.dataclass(frozen=True, eq=False)
class TreeConstraints(Constraints):
    """Rules under which a hypothesis is a tree over exactly the words of its sentence, written in
    symbols: `(L` opens a constituent, `)L` closes it, a leaf is the next word or a piece of it.

    1. The first token opens the root.
    2. A leaf may come within the root, while leaves are left. If `leaves` are given, it is the next
       of them, and a piece that continues a word follows the piece before it at once.
    3. `)L` closes the innermost open constituent, if that is an L with at least one leaf. The root
       is closed when no leaf is left, and then EOS is forced.
    4. `(L` may come while leaves are left and the limit leaves room for these, for all closing
       symbols and for EOS.
    5. No other token may come.

    Some token may always come: a limit too small for any tree grows to the smallest that suffices,
    the leaves + 3. `minima` are ignored. Forced prefixes override the rules; a prefix that does not
    begin a tree is not repaired.

    Args:
        opens: for each id of the vocabulary the number of the label that it opens, else -1,
            integers (V,).
        closes, is_leaf: likewise the label that it closes, and whether it is a leaf.
        count: number of leaves of each sentence's tree, integers (B,). For a sentence without words
            only EOS is written.
        leaves: ids of the leaves in order, integers (B, W), padded; None: any leaves.
        begins_word: whether each id begins a word, booleans (V,); required with `leaves`.

    Reference: Vinyals et al. 2015, "Grammar as a Foreign Language", section 2.1, for the symbols.
    """

    _: dataclasses.KW_ONLY
    opens: np.ndarray
    closes: np.ndarray
    is_leaf: np.ndarray
    count: tf.Tensor
    leaves: tf.Tensor | None = None
    begins_word: np.ndarray | None = None

    def wishes(self, limits, minima=None, prefixes=None):
        sentences = super().wishes(limits, None, prefixes)
        count = tf.cast(self.count, tf.int32)
        begun = tf.zeros([tf.size(count), 1], tf.int32)
        if prefixes is not None:
            begun = tf.concat([begun, tf.cast(prefixes, tf.int32)], axis=1)
        length = tf.math.count_nonzero(begun, axis=1, dtype=tf.int32)
        state = self._state(begun)
        smallest = length + state.fewest_tokens(count - state.leaves)
        sentences = {**sentences, "count": count, "limit": tf.maximum(sentences["limit"], smallest)}
        if self.leaves is None:
            return sentences
        # `_following` reads one column more when no leaf is left.
        return {**sentences, "leaves": tf.pad(self.leaves, [[0, 0], [0, 1]], constant_values=PAD)}

    def __call__(self, logits, history, position, sentences):
        width = tf.shape(history)[1]
        logits, allowed, forced, _ = super().__call__(logits, history, position, sentences)
        state = self._state(tf.reshape(history, [-1, tf.shape(history)[2]]))
        left = tf.repeat(sentences["count"], width) - state.leaves
        position = of_rows(position, history)
        room = tf.repeat(sentences["limit"], width) - position
        forced = tf.where((forced == FREE) & state.is_over(left), EOS, forced)
        may_come = self._may_come(state, left, room)
        if self.leaves is not None:
            following = self._following(state, tf.repeat(sentences["leaves"], width, axis=0))
            goes_on = (left > 0) & ~tf.gather(self.begins_word, following) & (state.leaves > 0)
            forced = tf.where((forced == FREE) & goes_on, following, forced)
            may_come &= ~self.is_leaf | tf.one_hot(following, len(self.is_leaf), True, False)
        may_come |= (forced != FREE)[:, None]
        return logits, tf.where(may_come, allowed, -float("inf")), forced, None

    def _state(self, history):
        """Return the `State` after tokens (rows, t)."""
        opened = tf.gather(self.opens, history)
        is_opening = opened >= 0
        is_closing = tf.gather(self.closes, history) >= 0
        is_leaf = tf.gather(self.is_leaf, history)
        steps = tf.cast(is_opening, tf.int32) - tf.cast(is_closing, tf.int32)
        depths = tf.cumsum(steps, axis=1)
        # The innermost open constituent was opened by the last symbol that led to this depth.
        innermost = _last(is_opening & (depths == depths[:, -1:]))
        return State(
            depth=depths[:, -1],
            has_root=tf.reduce_any(is_opening, axis=1),
            label=tf.gather(opened, tf.maximum(innermost, 0), batch_dims=1),
            has_leaf=_last(is_leaf) > innermost,
            leaves=tf.math.count_nonzero(is_leaf, axis=1, dtype=tf.int32),
        )

    def _following(self, state, leaves):
        last = tf.shape(leaves)[1] - 1
        return tf.gather(leaves, tf.minimum(state.leaves, last), batch_dims=1)

    def _may_come(self, state, left, room):
        """Return which tokens may come, booleans (rows, V), for the leaves and tokens left."""
        is_inside = state.depth > 0
        is_left = left > 0
        # A new constituent costs two tokens: one opens it and one closes it.
        needed = state.fewest_tokens(left) + tf.where(state.has_root, 2, 0)
        may_open = is_left & (is_inside | ~state.has_root) & (room >= needed)
        may_close = is_inside & (~is_left | (state.has_leaf & (state.depth > 1)))
        return (
            ((self.opens >= 0) & may_open[:, None])
            | (self.is_leaf & (is_left & is_inside)[:, None])
            | ((self.closes == state.label[:, None]) & may_close[:, None])
        )


def _last(flags):
    """Return the last place of each row where a flag (rows, t) is set, else -1, (rows,)."""
    places = tf.range(tf.shape(flags)[1])
    return tf.reduce_max(tf.where(flags, places, -1), axis=1)
