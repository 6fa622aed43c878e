"""Pairs of token ids to the batches that `model.fit` eats, in tf.data."""

import dataclasses

import numpy as np
import tensorflow as tf

from pipelines.bucketing import bucket_pairs
from pipelines.vocabulary import BOS

SENTENCES_A_CALL = 8192


@dataclasses.dataclass(frozen=True)
class TokenizedPairs:
    """Pairs as ids.

    Attributes:
        sources, targets: ragged tensors of ids (pairs, None), each row closed by EOS.
        too_long: how many pairs were dropped for their length.
    """

    sources: tf.RaggedTensor
    targets: tf.RaggedTensor
    too_long: int

    def __len__(self):
        return int(self.sources.nrows())


def tokenize_pairs(text, vocabulary, max_length=None):
    """Turn text into ids, and drop pairs with a side above `max_length`.

    Args:
        text: a `ParallelText`.
        vocabulary: a `Vocabulary`.
        max_length: tokens, EOS among them; None keeps every pair.

    Returns:
        `TokenizedPairs`.
    """
    sources, targets = (_tokenize(lines, vocabulary) for lines in (text.sources, text.targets))
    if max_length is None:
        return TokenizedPairs(sources, targets, 0)
    keep = (sources.row_lengths() <= max_length) & (targets.row_lengths() <= max_length)
    too_long = int(tf.math.count_nonzero(~keep))
    return TokenizedPairs(tf.ragged.boolean_mask(sources, keep), tf.ragged.boolean_mask(targets, keep), too_long)


def _tokenize(lines, vocabulary):
    parts = [vocabulary.tokenize(tf.constant(lines[start : start + SENTENCES_A_CALL])) for start in range(0, len(lines), SENTENCES_A_CALL)]
    return tf.concat(parts, axis=0)


def shuffle_forever(seed):
    """Every element once an epoch, in another order each time, without end."""
    return lambda indices: indices.shuffle(int(indices.cardinality()), seed=seed, reshuffle_each_iteration=True).repeat()


def batch_by_bucket(buckets):
    """Indices of pairs to `(bucket, indices)` batches.

    On an endless stream every batch is full: what does not fill a batch in one epoch waits for the next.
    """
    bucket_of, batch_sizes = tf.constant(buckets.bucket_of, tf.int64), tf.constant(buckets.batch_sizes, tf.int64)
    return lambda indices: indices.group_by_window(
        key_func=lambda index: bucket_of[index],
        reduce_func=lambda bucket, window: window.batch(batch_sizes[bucket]).map(lambda batch: (bucket, batch)),
        window_size_func=lambda bucket: batch_sizes[bucket],
    )


def look_up(pairs, buckets):
    """`(bucket, indices)` to `((source, target_input), target_output)`, padded to the bucket's shape.

    The target input is the output shifted right behind BOS.
    """
    source_lengths, target_lengths = tf.constant(buckets.source_lengths), tf.constant(buckets.target_lengths)

    def padded(rows, length):
        dense = rows.to_tensor()
        return tf.pad(dense, [[0, 0], [0, length - tf.shape(dense, tf.int64)[1]]])

    def batch(bucket, indices):
        source = padded(tf.gather(pairs.sources, indices), source_lengths[bucket])
        output = padded(tf.gather(pairs.targets, indices), target_lengths[bucket])
        shifted = tf.pad(output[:, :-1], [[0, 0], [1, 0]], constant_values=BOS)
        return (source, shifted), output

    return lambda batches: batches.map(batch, num_parallel_calls=tf.data.AUTOTUNE)


def training_batches(pairs, batch_tokens, seed, skip=0):
    """An endless, shuffled stream of full batches.

    The same seed gives the same stream; `skip` goes on where an interrupted run stopped.

    Args:
        pairs: `TokenizedPairs`.
        batch_tokens: positions a side and batch, padding included.
        seed: of the order.
        skip: batches already trained on.

    Returns:
        The dataset of `((source, target_input), target_output)`, int32 (B, S), (B, T), (B, T); and its `Buckets`.
    """
    buckets = _buckets(pairs, batch_tokens)
    indices = tf.data.Dataset.range(len(pairs))
    batches = indices.apply(shuffle_forever(seed)).apply(batch_by_bucket(buckets)).skip(skip)
    return batches.apply(look_up(pairs, buckets)).prefetch(tf.data.AUTOTUNE), buckets


def evaluation_batches(pairs, batch_tokens):
    """Every pair once, in order within its bucket; the last batch of a bucket may be short."""
    buckets = _buckets(pairs, batch_tokens)
    batches = tf.data.Dataset.range(len(pairs)).apply(batch_by_bucket(buckets))
    batches = batches.apply(tf.data.experimental.assert_cardinality(buckets.batches_of_one_pass))
    return batches.apply(look_up(pairs, buckets)).prefetch(tf.data.AUTOTUNE)


def _buckets(pairs, batch_tokens):
    return bucket_pairs(*(np.asarray(side.row_lengths()) for side in (pairs.sources, pairs.targets)), batch_tokens)
