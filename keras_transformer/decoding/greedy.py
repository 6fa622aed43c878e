"""Greedy search: the likeliest next token, every time. Beam search with a beam of 1 (Vaswani et al. 2017, section 6.1)."""

import tensorflow as tf

from keras_transformer.decoding.cache import BOS, EOS, PAD, growing_shapes, token_log_probabilities


class GreedySearch:
    """The likeliest next token until EOS or the limit.

    Call arguments:
        step: see `keras_transformer.decoding`.
        past: the cache before the first token, B rows.
        limits: most tokens of each sentence, EOS among them, integers (B,), each at least 1. EOS is forced there.

    Returns:
        ids, int32 (B, 1, L); and log P(ids), float32 (B, 1).
    """

    beam_size = 1

    def __call__(self, step, past, limits):
        batch = tf.shape(limits)[0]

        def unfinished(position, newest, ids, scores, done, past):
            return ~tf.reduce_all(done) & (position < tf.reduce_max(limits))

        def extend(position, newest, ids, scores, done, past):
            logits, past = step(newest[:, None], position, past)
            log_probabilities = token_log_probabilities(logits, limits == position + 1)[:, 0]
            newest = tf.where(done, PAD, tf.argmax(log_probabilities, axis=-1, output_type=tf.int32))
            scores += tf.where(done, 0.0, tf.reduce_max(log_probabilities, axis=-1))
            return position + 1, newest, tf.concat([ids, newest[:, None]], axis=1), scores, done | (newest == EOS), past

        state = (0, tf.fill([batch], BOS), tf.zeros([batch, 0], tf.int32), tf.zeros([batch]), tf.zeros([batch], tf.bool), past)
        row = tf.TensorShape([None])
        shapes = (tf.TensorShape([]), row, tf.TensorShape([None, None]), row, row, growing_shapes(past))
        _, _, ids, scores, _, _ = tf.while_loop(unfinished, extend, state, shape_invariants=shapes)
        return ids[:, None, :], scores[:, None]
