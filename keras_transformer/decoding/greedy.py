"""Greedy search: the likeliest next token, every time. Beam search with a beam of 1 (Vaswani et al. 2017, section 6.1)."""

import tensorflow as tf

from keras_transformer.decoding.cache import any_rows, growing, take, take_some
from keras_transformer.decoding.candidates import BOS, EOS, best_tokens, log_normalizer


class GreedySearch:
    """The likeliest next token until EOS or the limit. A sentence that has ended leaves the batch.

    Call arguments:
        step: see `keras_transformer.decoding`.
        past: the cache before the first token, B rows.
        source: what `step` needs of the source, any nest of tensors with B rows.
        limits: most tokens of each sentence, EOS among them, integers (B,), each at least 1. EOS is forced there.

    Returns:
        ids, int32 (B, 1, L); and log P(ids), float32 (B, 1).
    """

    beam_size = 1

    def __call__(self, step, past, source, limits):
        sentences = tf.shape(limits)[0]

        def unfinished(position, searched, ids, scores, source, past):
            # The second half ends the search of a model whose logits are not numbers.
            return (tf.size(searched["sentence"]) > 0) & (position < tf.reduce_max(limits))

        def extend(position, searched, ids, scores, source, past):
            logits, past = step(searched["newest"][:, None], position, past, source)
            logits = logits[:, 0]
            best, tokens = best_tokens(logits, 1, searched["limit"] == position + 1)
            newest = tokens[:, 0]
            places = searched["sentence"][:, None]
            scores = tf.tensor_scatter_nd_add(scores, places, best[:, 0] - log_normalizer(logits))
            ids = tf.concat([ids, tf.scatter_nd(places, newest, [sentences])[:, None]], axis=1)
            going_on = tf.cast(tf.where(newest != EOS)[:, 0], tf.int32)
            searched = take({**searched, "newest": newest}, going_on)
            return position + 1, searched, ids, scores, take_some(source, going_on), take_some(past, going_on)

        searched = {"sentence": tf.range(sentences), "limit": tf.cast(limits, tf.int32), "newest": tf.fill([sentences], BOS)}
        state = (0, searched, tf.zeros([sentences, 0], tf.int32), tf.zeros([sentences]), source, past)
        rows = tf.TensorShape([None])
        shapes = (tf.TensorShape([]), any_rows(searched), tf.TensorShape([None, None]), rows, any_rows(source), growing(past))
        _, _, ids, scores, _, _ = tf.while_loop(unfinished, extend, state, shape_invariants=shapes)
        return ids[:, None, :], scores[:, None]
