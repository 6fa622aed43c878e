"""Which tokens may come next, and how likely they are: the arithmetic of one step of section 6.1's
decoding.
"""

import tensorflow as tf

from pipelines.special_ids import BOS, EOS, PAD

FREE = -1
BLOCK = 64


def log_normalizer(logits):
    """Log sum_v exp z_v of each row, to the last bit the same wherever the row stands: so ties stay
    ties in any company.

    Args:
        logits: float32 (rows, V).

    Returns:
        float32, (rows,).
    """
    # Rounding depends on an entry's place in a vector register. A row of whole registers begins
    # one, wherever it stands; and the few logarithms are taken in float64.
    logits = _whole_blocks(logits)
    largest = tf.reduce_max(_block_maxima(logits), axis=-1, keepdims=True)
    total = tf.reduce_sum(tf.exp(logits - largest), axis=-1)
    return largest[:, 0] + tf.cast(tf.math.log(tf.cast(total, tf.float64)), tf.float32)


def possible_tokens(logits, forced, may_end=None):
    """The logits of all tokens that may come, -inf elsewhere: (rows, V). Arguments as in
    `best_tokens`.
    """
    ids = tf.range(tf.shape(logits)[1])[None]
    forced = forced[:, None]
    return tf.where(
        tf.where(forced == FREE, ~_barred(ids, may_end), ids == forced), logits, -float("inf")
    )


def best_tokens(logits, count, forced, may_end=None):
    """The likeliest next tokens of each row, PAD and BOS left out; of equal ones the lower id
    first.

    In two stages, for a search through whole rows is slow: first the blocks with the highest
    maxima, then the best inside of these. At least `count` entries in them come before every entry
    of another block.

    Args:
        logits: float32 (rows, V).
        count: how many, an integer, at most V.
        forced: integers (rows,): the only token that may come, or FREE.
        may_end: booleans (rows,), whether EOS is among them; everywhere where left out.

    Returns:
        logits and ids, both (rows, count), best first; a logit of -inf is of a token that may not
        come.
    """
    of_forced = tf.gather(logits, tf.maximum(forced, 0), batch_dims=1)[:, None]
    logits = _whole_blocks(logits)
    maxima = _block_maxima(logits)
    rows = tf.shape(logits)[0]
    blocks = tf.shape(logits)[1] // BLOCK
    logits = tf.reshape(logits, [rows, blocks, BLOCK])

    def allowed(values, ids):
        return tf.where(_barred(ids, may_end), -float("inf"), values)

    first = tf.reduce_max(allowed(logits[:, 0], tf.range(BLOCK)[None]), axis=-1, keepdims=True)
    maxima = tf.concat([first, maxima[:, 1:]], axis=1)
    chosen = tf.sort(
        tf.math.top_k(maxima, tf.minimum(count, blocks), sorted=False).indices, axis=-1
    )
    ids = tf.reshape(chosen[:, :, None] * BLOCK + tf.range(BLOCK), [rows, -1])
    inside = allowed(tf.reshape(tf.gather(logits, chosen, batch_dims=1), [rows, -1]), ids)
    values, places = tf.math.top_k(inside, count)
    is_first = tf.range(count)[None] == 0
    is_forced = (forced != FREE)[:, None]
    forced = forced[:, None]
    values = tf.where(is_forced, tf.where(is_first, of_forced, -float("inf")), values)
    return values, tf.where(is_forced, forced, tf.gather(ids, places, batch_dims=1))


def _barred(ids, may_end):
    barred = (ids == PAD) | (ids == BOS)
    return barred if may_end is None else barred | ((ids == EOS) & ~may_end[:, None])


def _block_maxima(logits):
    """The largest of each block: (rows, V) of whole blocks to (rows, V / BLOCK). Asked for twice,
    TensorFlow computes them once.
    """
    return tf.reduce_max(tf.reshape(logits, [tf.shape(logits)[0], -1, BLOCK]), axis=-1)


def _whole_blocks(logits):
    """The vocabulary filled up with -inf to a multiple of BLOCK."""
    width = logits.shape[-1]
    if width % BLOCK == 0:
        return logits
    return tf.pad(logits, [[0, 0], [0, -width % BLOCK]], constant_values=-float("inf"))
