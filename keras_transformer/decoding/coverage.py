"""A penalty on source words that nothing was attended to for: an addition to section 6.1's scores
(Wu et al. 2016, section 7, eq. 14).

cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1))        p_ij: how much target token j attended to source token i
"""

import tensorflow as tf

LEAST = 1e-10


def covering(attentive_step):
    """A step function for `BeamSearch` that adds up the attention in its cache.

    Args:
        attentive_step: a step function that gives the attention, float32 (B, K, S), as well.

    Returns:
        A step function whose cache is that of `no_coverage`.
    """

    def step(ids, position, past, source):
        logits, tokens, attention = attentive_step(ids, position, past["tokens"], source)
        return logits, {
            "tokens": tokens,
            "coverage": past["coverage"] + tf.reshape(attention, tf.shape(past["coverage"])),
        }

    return step


def no_coverage(past, is_token, width):
    """The cache before the first token.

    Args:
        past: that of the step function, B K rows.
        is_token: booleans (B, S), False at the source's padding, which counts as covered.
        width: K.
    """
    return {"tokens": past, "coverage": tf.repeat(tf.cast(~is_token, tf.float32), width, axis=0)}


def coverage_penalty(coverage, beta):
    """cp(X; Y), at most 0, of coverages (..., S): (...)."""
    return beta * tf.reduce_sum(tf.math.log(tf.clip_by_value(coverage, LEAST, 1.0)), axis=-1)
