"""What may come next, with the probabilities that `Sampling` draws by: one step of section 6.1's
decoding, to look at.
"""

from typing import NamedTuple

import tensorflow as tf

from keras_transformer.decoding.candidates import FREE, log_normalizer, possible_tokens


class NextTokens(NamedTuple):
    """The likeliest next tokens of B rows, likeliest first.

    Attributes:
        ids: int32 (B, n).
        drawn: how likely each is drawn, float32 (B, n); 0 where top_k or top_p leaves it out.
        probabilities: P of the model, float32 (B, n).
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

    Args:
        logits: z, float32 (B, V).
        temperature: above 0, float32 (B,).
        top_k: how many tokens are drawn from, integers (B,); 0: all.
        top_p: share of the probability that is drawn from, in (0, 1], float32 (B,).
        count: n; V, if that is less.
    """
    size = logits.shape[-1]
    possible = possible_tokens(logits, tf.fill([tf.shape(logits)[0]], FREE))
    values, ids = tf.math.top_k(possible, size)
    rank = tf.range(size)[None]
    top_k = tf.cast(top_k, tf.int32)
    most = tf.where(top_k > 0, top_k, size)[:, None]
    likely = tf.exp((values - values[:, :1]) / temperature[:, None])
    likely = tf.where(rank < most, likely, 0.0)
    held = tf.cumsum(likely, axis=1, exclusive=True)
    total = tf.reduce_sum(likely, axis=1, keepdims=True)
    # A token counts while those before it hold less than top_p; the first always counts.
    likely = tf.where((rank == 0) | (held < top_p[:, None] * total), likely, 0.0)
    drawn = likely / tf.reduce_sum(likely, axis=1, keepdims=True)
    probabilities = tf.exp(values - log_normalizer(logits)[:, None])
    return NextTokens(ids[:, :count], drawn[:, :count], probabilities[:, :count])
