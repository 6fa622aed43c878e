"""How likely a given target is: log P(Y | X), which the searches of section 6.1 maximize."""

import tensorflow as tf

from keras_transformer.decoding.candidates import log_normalizer
from pipelines.special_ids import PAD


def token_log_probabilities(logits: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Log P(y_t | y_1 .. y_(t-1), X) of each token. Their sum is the score of `GreedySearch`, and
    that of `BeamSearch` before its penalties.

    Args:
        logits: float32 (B, T, V); position t is computed from the tokens before it.
        ids: the tokens, integers (B, T), padded with PAD.

    Returns:
        float32 (B, T), 0 at padding.
    """
    vocabulary_size = logits.shape[-1]
    rows = tf.reshape(logits, [-1, vocabulary_size])
    chosen = tf.gather(rows, tf.reshape(ids, [-1]), batch_dims=1)
    return tf.where(ids == PAD, 0.0, tf.reshape(chosen - log_normalizer(rows), tf.shape(ids)))
