"""Symbols of trees to trees in brackets, and back, as TensorFlow graphs: a SavedModel takes words
and gives trees (Vaswani et al. 2017, section 6.3).

The rules that repair symbols are those of `linearization`, applied to a batch at once.
"""

import re

import tensorflow as tf

from pipelines.trees import BRACKETS, ESCAPES
from pipelines.trees.linearization import ROOT, WORD, Alphabet

# In the text of a tree: a part of speech with its word; a label with its function tags.
PRETERMINAL = r"\(([-=][^()\s]*|[^-=()\s]+)[^()\s]*\s+([^()\s]+)\)"
TAGGED = r"^(\([^-=][^-=]*)[-=].*"


def trees(alphabet: Alphabet, ids: tf.Tensor, text: tf.Tensor) -> tf.Tensor:
    """Make trees of symbols, ids (B, L), over the words of sentences (B,), which ASCII white space
    separates, as `linearization.from_symbols` does. Returns strings (B,): brackets over exactly the
    words, escaped; "" for a sentence without words.
    """
    words = tf.strings.split(text)
    counts = tf.cast(words.row_lengths(), tf.int32)
    opens = tf.gather(tf.constant(alphabet.opens), ids)
    closed_at = _closed_at(opens, tf.gather(tf.constant(alphabet.closes), ids))
    number = tf.gather(tf.constant(alphabet.takes), ids)
    is_word = tf.cast(number >= 0, tf.int32)
    # Rule 3: a symbol that would take a word is ignored when no word is left.
    before = tf.minimum(tf.cumsum(is_word, axis=1, exclusive=True), counts[:, None])
    takes = (is_word > 0) & (before < counts[:, None])
    # Rule 6: a constituent has words. One open at the end has those that are left (rule 5).
    before_or_end = tf.concat([before, counts[:, None]], axis=1)
    is_constituent = (opens >= 0) & (tf.gather(before_or_end, closed_at, batch_dims=1) > before)
    closings = _closings(is_constituent, closed_at)
    # Rule 4: a root that was not written is left out around a single child.
    writes_root = tf.reduce_any(opens[:, :1] >= 0, axis=1)
    adds_root = ~writes_root & (_outside(is_constituent, takes, closings, counts) != 1)
    opening = tf.constant([*(f" ({label}" for label in alphabet.labels), ""])
    escaped = _escaped(words)
    num_taken = tf.reduce_sum(tf.cast(takes, tf.int32), axis=1)
    bodies = tf.strings.join(
        [
            tf.gather(opening, tf.where(is_constituent, opens, len(alphabet.labels))),
            _leaves(
                tf.gather(alphabet.parts_of_speech, tf.maximum(number, 0)),
                tf.gather(escaped, before, batch_dims=1),
                takes,
            ),
            _closing_brackets(closings[:, :-1]),
        ]
    )
    numbers = tf.range(tf.shape(escaped)[1])
    is_left = (numbers >= num_taken[:, None]) & (numbers < counts[:, None])
    parts = [
        tf.where(adds_root, f" ({ROOT}", ""),
        tf.strings.reduce_join(bodies, axis=1),
        tf.strings.reduce_join(_leaves(WORD, escaped, is_left), axis=1),
        _closing_brackets(closings[:, -1] + tf.cast(adds_root, tf.int32)),
    ]
    return tf.where(counts > 0, tf.strings.strip(tf.strings.join(parts)), "")


def _closed_at(opens, closes):
    """Return where each constituent ends: the position of the symbol that closes it, L at the end,
    int32 (B, L). Rule 2: a symbol closes the innermost of its label, and all that is open within.
    """
    length = tf.shape(opens)[1]
    positions = tf.range(length)
    # Rule 4: the root, which the first symbol opens, is closed at the end only.
    inner = (opens >= 0) & (positions > 0)

    def close(now, closed_at):
        is_open = inner & (positions < now) & (closed_at == length)
        fits = is_open & (opens == closes[:, now, None])
        innermost = tf.reduce_max(tf.where(fits, positions, -1), axis=1, keepdims=True)
        ends = is_open & (innermost >= 0) & (positions >= innermost)
        return now + 1, tf.where(ends, now, closed_at)

    _, closed_at = tf.while_loop(
        lambda now, _: now < length, close, (0, tf.fill(tf.shape(opens), length))
    )
    return closed_at


def _closings(is_constituent, closed_at):
    """Count the constituents that end at each position and at the end, (B, L + 1)."""
    rows, length = tf.unstack(tf.shape(is_constituent))
    numbers = tf.broadcast_to(tf.range(rows)[:, None], [rows, length])
    return tf.tensor_scatter_nd_add(
        tf.zeros([rows, length + 1], tf.int32),
        tf.stack([numbers, closed_at], axis=-1),
        tf.cast(is_constituent, tf.int32),
    )


def _outside(is_constituent, takes, closings, counts):
    """Count the constituents and words outside of all others, (B,)."""
    opened = tf.cumsum(tf.cast(is_constituent, tf.int32), axis=1, exclusive=True)
    depths = opened - tf.cumsum(closings[:, :-1], axis=1, exclusive=True)
    is_outside = (is_constituent | takes) & (depths == 0)
    outside = tf.math.count_nonzero(is_outside, axis=1, dtype=tf.int32)
    left = counts - tf.reduce_sum(tf.cast(takes, tf.int32), axis=1)
    return outside + tf.where(closings[:, -1] == 0, left, 0)


def _closing_brackets(counts):
    """Return so many closing brackets, strings of the shape of the counts."""
    most = tf.strings.reduce_join(tf.fill([tf.maximum(tf.reduce_max(counts), 0)], ")"))
    return tf.strings.substr(tf.fill(tf.shape(counts), most), tf.zeros_like(counts), counts)


def _escaped(words):
    """Return the words as they stand in brackets, padded with "" at least once, (B, W + 1)."""
    escaped = words.flat_values
    for bracket, escape in ESCAPES.items():
        escaped = tf.strings.regex_replace(escaped, re.escape(bracket), escape)
    escaped = words.with_flat_values(escaped).to_tensor("")
    return tf.concat([escaped, tf.fill([tf.shape(escaped)[0], 1], "")], axis=1)


def _leaves(parts_of_speech, words, is_word):
    """Return words in brackets, "" where `is_word` is false, all of one shape."""
    return tf.where(is_word, tf.strings.join([" (", parts_of_speech, " ", words, ")"]), "")


# What replaces a `PRETERMINAL`, for each of `linearization.LEAVES`.
LEAVES = {"xx": f" {WORD} ", "parts_of_speech": rf" {WORD}-\1 ", "words": r" \2 "}


def symbols(text: tf.Tensor, leaves: str = "xx") -> tf.Tensor:
    """Write trees (B,) as symbols joined by spaces, strings (B,), as `linearization.to_symbols`
    does, without function tags and indices. Trees must have no traces, and each part of speech with
    its word as "(DT the)". Symbols stay as they are, except for words that are brackets.
    """
    text = tf.strings.regex_replace(text, PRETERMINAL, LEAVES[leaves])
    text = tf.strings.regex_replace(text, f" {WORD}-{WORD} ", f" {WORD} ")
    text = tf.strings.regex_replace(text, r"\(", " (")
    # Matches do not overlap: three brackets in a row take two passes.
    for _ in range(2):
        text = tf.strings.regex_replace(text, r"\)\)", ") )")
    tokens = tf.strings.regex_replace(tf.strings.split(text).to_tensor(""), TAGGED, r"\1")
    opening = tf.strings.regex_replace(tokens, r"^\(", ")")
    named = tf.where(tokens == ")", _before_on_level(tokens, opening), tokens)
    # Brackets without a label are left out, such as those around trees of the Penn Treebank.
    joined = tf.strings.reduce_join(
        tf.strings.regex_replace(named, r"^[()]$", ""), axis=1, separator=" "
    )
    symbols = tf.strings.strip(tf.strings.regex_replace(joined, r"\s+", " "))
    return _unescaped(symbols) if leaves == "words" else symbols


def _unescaped(symbols):
    """Return words as they stand in the text, as `trees.unescaped` does."""
    words = tf.strings.split(symbols, " ")
    flat = words.flat_values
    for escape, bracket in BRACKETS.items():
        flat = tf.strings.regex_replace(flat, escape, bracket)
    flat = tf.strings.regex_replace(flat, r"\\([/*])", r"\1")
    # Labels stay as they are.
    is_symbol = tf.strings.regex_full_match(words.flat_values, "[()].*")
    flat = tf.where(is_symbol, words.flat_values, flat)
    return tf.strings.reduce_join(words.with_flat_values(flat), axis=1, separator=" ")


def _before_on_level(tokens, values):
    """Return for each closing bracket the value of its opening bracket, (B, L), by levels."""
    opens = tf.cast(tf.strings.regex_full_match(tokens, r"\(.*"), tf.int32)
    closes = tf.cast(tf.strings.regex_full_match(tokens, r"\).*"), tf.int32)
    levels = tf.cumsum(opens, axis=1) - tf.cumsum(closes, axis=1, exclusive=True)
    # Words are sorted to the front, so that brackets of one level stand side by side.
    keys = tf.where(opens + closes > 0, levels, tf.int32.min)
    order = tf.argsort(keys, axis=1, stable=True)
    sorted_values = tf.gather(values, order, batch_dims=1)
    before = tf.concat([sorted_values[:, :1], sorted_values[:, :-1]], axis=1)
    return tf.gather(before, tf.argsort(order, axis=1), batch_dims=1)
