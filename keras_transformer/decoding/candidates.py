"""Which tokens may come next, and how likely they are: the arithmetic of one step of section 6.1's
decoding, and the score of a given target, log P(Y | X).
"""

from typing import NamedTuple

import tensorflow as tf

from pipelines.special_ids import BOS, EOS, PAD

FREE = -1
BLOCK = 64


def log_normalizer(logits: tf.Tensor) -> tf.Tensor:
    """Return log sum_v exp z_v of each row of logits, float32 (rows, V): (rows,).

    The result does not depend, to the last bit, on the row's place in its batch. So equal scores
    stay equal in any batch.
    """
    # Rounding depends on an entry's place in a vector register. Rows that fill whole registers all
    # begin at the start of one. The few logarithms are taken in float64.
    logits = _whole_blocks(logits)
    largest = tf.reduce_max(_block_maxima(logits), axis=-1, keepdims=True)
    total = tf.reduce_sum(tf.exp(logits - largest), axis=-1)
    return largest[:, 0] + tf.cast(tf.math.log(tf.cast(total, tf.float64)), tf.float32)


def possible_tokens(
    logits: tf.Tensor, forced: tf.Tensor, may_end: tf.Tensor | None = None
) -> tf.Tensor:
    """Return logits (rows, V) with -inf at tokens that may not come; see `best_tokens`."""
    ids = tf.range(tf.shape(logits)[1])[None]
    forced = forced[:, None]
    return tf.where(
        tf.where(forced == FREE, ~_barred(ids, may_end), ids == forced), logits, -float("inf")
    )


def best_tokens(
    logits: tf.Tensor, count: int | tf.Tensor, forced: tf.Tensor, may_end: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Find the likeliest next tokens of each row, PAD and BOS excluded. Ties go to the lower id.

    Searching whole rows is slow, so there are two stages: first the `count` blocks with the highest
    maxima, then the best entries inside these. Each of these blocks has an entry that ranks above
    every entry of the other blocks, so none of the best is missed.

    From logits (rows, V), -inf at tokens that may not come, and a `count` of at most V, return
    logits and ids, both (rows, count). `forced` (rows,) is the only token that may come, or FREE.
    `may_end` (rows,) says whether EOS may come; by default it may.
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
    """Return the maximum of each block: (rows, V) of whole blocks to (rows, V / BLOCK). Two callers
    need them; TensorFlow computes them once.
    """
    return tf.reduce_max(tf.reshape(logits, [tf.shape(logits)[0], -1, BLOCK]), axis=-1)


def _whole_blocks(logits):
    """Pad logits with -inf to a multiple of BLOCK."""
    width = logits.shape[-1]
    if width % BLOCK == 0:
        return logits
    return tf.pad(logits, [[0, 0], [0, -width % BLOCK]], constant_values=-float("inf"))


class NextTokens(NamedTuple):
    """The likeliest next tokens of B rows, likeliest first, int32 (B, n); the probability that
    `Sampling` draws each, 0 where top_k or top_p excludes it, float32 (B, n); and P of the model.
    """

    ids: tf.Tensor
    shares: tf.Tensor
    probabilities: tf.Tensor


def next_tokens(
    logits: tf.Tensor, temperature: tf.Tensor, top_k: tf.Tensor, top_p: tf.Tensor, count: int
) -> NextTokens:
    """Find the `count` likeliest next tokens, at most V. PAD and BOS never come.

        P(v) ~ exp(z_v / temperature) over the top_k likeliest tokens, of these the fewest whose
        probabilities sum to top_p

    The logits z are (B, V). Each (B,) are temperature, above 0, top_k, 0 for all, and top_p, in
    (0, 1].
    """
    size = logits.shape[-1]
    possible = possible_tokens(logits, tf.fill([tf.shape(logits)[0]], FREE))
    values, ids = tf.math.top_k(possible, size)
    rank = tf.range(size)[None]
    top_k = tf.cast(top_k, tf.int32)
    most = tf.where(top_k > 0, top_k, size)[:, None]
    likely = tf.exp((values - values[:, :1]) / temperature[:, None])
    likely = tf.where(rank < most, likely, 0.0)
    likely = tf.where(in_nucleus(likely, top_p[:, None]), likely, 0.0)
    shares = likely / tf.reduce_sum(likely, axis=1, keepdims=True)
    probabilities = tf.exp(values - log_normalizer(logits)[:, None])
    return NextTokens(ids[:, :count], shares[:, :count], probabilities[:, :count])


def in_nucleus(likely: tf.Tensor, top_p: float | tf.Tensor) -> tf.Tensor:
    """Return which shares (rows, n) of any sum, largest first, are in the nucleus of top_p."""
    before = tf.cumsum(likely, axis=-1, exclusive=True)
    total = tf.reduce_sum(likely, axis=-1, keepdims=True)
    # A token belongs to it if those before it sum to less than top_p. The first always does.
    return (tf.range(tf.shape(likely)[1])[None] == 0) | (before < top_p * total)


def token_log_probabilities(logits: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Return log P(y_t | y_1 .. y_(t-1), X) of each token of ids (B, T), float32 (B, T), 0 at PAD.
    Position t of the logits (B, T, V) is computed from the tokens before it. The sum over t is the
    score of `GreedySearch`, and that of `BeamSearch` before its penalties.
    """
    rows = tf.reshape(logits, [-1, logits.shape[-1]])
    chosen = tf.gather(rows, tf.reshape(ids, [-1]), batch_dims=1)
    return tf.where(ids == PAD, 0.0, tf.reshape(chosen - log_normalizer(rows), tf.shape(ids)))
