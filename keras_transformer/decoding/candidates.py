"""Which tokens may come next, and how likely they are: the arithmetic of one step of section 6.1's
decoding, and the score of a given target, log P(Y | X).
"""

from typing import NamedTuple

import tensorflow as tf

from pipelines.special_ids import BOS, EOS, PAD

FREE = -1
BLOCK = 64


def log_normalizer(logits: tf.Tensor) -> tf.Tensor:
    """Log sum_v exp z_v of each row of logits, float32 (rows, V): (rows,).

    The result is the same to the last bit wherever the row stands in its batch. So equal scores
    stay equal in any batch.
    """
    # Rounding depends on an entry's place in a vector register. A row that fills whole registers
    # begins at the start of one, wherever it stands. The few logarithms are taken in float64.
    logits = _whole_blocks(logits)
    largest = tf.reduce_max(_block_maxima(logits), axis=-1, keepdims=True)
    total = tf.reduce_sum(tf.exp(logits - largest), axis=-1)
    return largest[:, 0] + tf.cast(tf.math.log(tf.cast(total, tf.float64)), tf.float32)


def possible_tokens(
    logits: tf.Tensor, forced: tf.Tensor, may_end: tf.Tensor | None = None
) -> tf.Tensor:
    """The logits of all tokens that may come, -inf elsewhere: (rows, V); see `best_tokens`."""
    ids = tf.range(tf.shape(logits)[1])[None]
    forced = forced[:, None]
    return tf.where(
        tf.where(forced == FREE, ~_barred(ids, may_end), ids == forced), logits, -float("inf")
    )


def best_tokens(
    logits: tf.Tensor, count: int | tf.Tensor, forced: tf.Tensor, may_end: tf.Tensor | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """The likeliest next tokens of each row, without PAD and BOS. Of equals the lower id is first.

    A search through whole rows is slow, so there are two stages: first the `count` blocks with the
    highest maxima, then the best entries inside these. Each of these blocks has an entry that comes
    before every entry of the other blocks, so none of the best is missed.

    Of logits (rows, V), for a `count` of at most V, come logits and ids, both (rows, count). A
    token with a logit of -inf may not come. `forced` (rows,) is the only token that may, or FREE;
    `may_end` (rows,) says whether EOS may, which is so in every row by default.
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
    """The largest of each block: (rows, V) of whole blocks to (rows, V / BLOCK). Two callers ask
    for them; TensorFlow computes them once.
    """
    return tf.reduce_max(tf.reshape(logits, [tf.shape(logits)[0], -1, BLOCK]), axis=-1)


def _whole_blocks(logits):
    """Logits whose width is filled up with -inf to a multiple of BLOCK."""
    width = logits.shape[-1]
    if width % BLOCK == 0:
        return logits
    return tf.pad(logits, [[0, 0], [0, -width % BLOCK]], constant_values=-float("inf"))


class NextTokens(NamedTuple):
    """The likeliest next tokens of B rows, likeliest first, int32 (B, n); how likely `Sampling`
    draws each, 0 where top_k or top_p leaves it out; and P of the model, both float32 (B, n).
    """

    ids: tf.Tensor
    drawn: tf.Tensor
    probabilities: tf.Tensor


def next_tokens(
    logits: tf.Tensor, temperature: tf.Tensor, top_k: tf.Tensor, top_p: tf.Tensor, count: int
) -> NextTokens:
    """Find the likeliest next tokens. PAD and BOS never come.

        P(v) ~ exp(z_v / temperature) over the top_k likeliest tokens, of these the fewest that hold
        top_p of the probability

    Of logits z (B, V); temperature above 0, top_k, 0 for all, and top_p in (0, 1], each (B,); and
    a count of n, or V if that is less.
    """
    size = logits.shape[-1]
    possible = possible_tokens(logits, tf.fill([tf.shape(logits)[0]], FREE))
    values, ids = tf.math.top_k(possible, size)
    rank = tf.range(size)[None]
    top_k = tf.cast(top_k, tf.int32)
    most = tf.where(top_k > 0, top_k, size)[:, None]
    likely = tf.exp((values - values[:, :1]) / temperature[:, None])
    likely = tf.where(rank < most, likely, 0.0)
    likely = tf.where(are_held(likely, top_p[:, None]), likely, 0.0)
    drawn = likely / tf.reduce_sum(likely, axis=1, keepdims=True)
    probabilities = tf.exp(values - log_normalizer(logits)[:, None])
    return NextTokens(ids[:, :count], drawn[:, :count], probabilities[:, :count])


def are_held(likely: tf.Tensor, top_p: float | tf.Tensor) -> tf.Tensor:
    """Which of the likeliest first are drawn from, booleans, of shares (rows, n) of any sum."""
    held = tf.cumsum(likely, axis=-1, exclusive=True)
    total = tf.reduce_sum(likely, axis=-1, keepdims=True)
    # A token counts while those before it hold less than top_p; the first always counts.
    return (tf.range(tf.shape(likely)[1])[None] == 0) | (held < top_p * total)


def token_log_probabilities(logits: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Log P(y_t | y_1 .. y_(t-1), X) of each token of ids (B, T), float32 (B, T), 0 at PAD, of
    logits (B, T, V), where position t is computed from the tokens before it. Their sum is the score
    of `GreedySearch`, and that of `BeamSearch` before its penalties.
    """
    rows = tf.reshape(logits, [-1, logits.shape[-1]])
    chosen = tf.gather(rows, tf.reshape(ids, [-1]), batch_dims=1)
    return tf.where(ids == PAD, 0.0, tf.reshape(chosen - log_normalizer(rows), tf.shape(ids)))
