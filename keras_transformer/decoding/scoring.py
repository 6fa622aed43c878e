"""How likely a given target is: the log P(Y | X) that the searches of section 6.1 maximize."""

import tensorflow as tf

from keras_transformer.decoding.candidates import log_normalizer
from pipelines.special_ids import PAD


def token_log_probabilities(logits, ids):
    """Log P(y_t | y_1 .. y_(t-1), X) of each token; their sum is the score of `GreedySearch`, and
    of `BeamSearch` before its penalty.

    Args:
        logits: float32 (B, T, V), those at position t from the tokens before it.
        ids: the tokens, integers (B, T), padded with 0.

    Returns:
        float32 (B, T), 0 at padding.
    """
    vocabulary_size = logits.shape[-1]
    rows = tf.reshape(logits, [-1, vocabulary_size])
    chosen = tf.gather(rows, tf.reshape(ids, [-1]), batch_dims=1)
    return tf.where(ids == PAD, 0.0, tf.reshape(chosen - log_normalizer(rows), tf.shape(ids)))
