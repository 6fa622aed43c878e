"""Pairs of token ids to the batches that `model.fit` eats."""

import dataclasses
import itertools

import numpy as np
import tensorflow as tf

from pipelines.bucketing import MOST_PADDING, Buckets, bucket_pairs
from pipelines.ordering import BatchOrder
from pipelines.record_files import Records
from pipelines.special_ids import BOS
from pipelines.token_ids import TokenIds, TokenizedPairs, smallest_dtype

SENTENCES_A_CALL = 8192


def tokenize_pairs(text, vocabulary, max_length=None):
    """Turn text into ids, and drop pairs with a side above `max_length`.

    Args:
        text: a `ParallelText`; or `Records`, whose ids are read.
        vocabulary: a `Vocabulary`.
        max_length: tokens, EOS among them; None keeps every pair.

    Returns:
        `TokenizedPairs`.
    """
    if isinstance(text, Records):
        return text.pairs(max_length)
    pairs = TokenizedPairs(
        *(_tokenize(lines, vocabulary) for lines in (text.sources, text.targets))
    )
    return pairs if max_length is None else pairs.up_to(max_length)


def _tokenize(lines, vocabulary):
    parts = [
        vocabulary.tokenize(tf.constant(lines[start : start + SENTENCES_A_CALL]))
        for start in range(0, len(lines), SENTENCES_A_CALL)
    ]
    dtype = smallest_dtype(vocabulary.size)
    return TokenIds.concatenate(
        TokenIds.of_lengths(part.values.numpy().astype(dtype), part.row_lengths().numpy())
        for part in parts
    )


@dataclasses.dataclass(frozen=True)
class TrainingBatches:
    """An endless, shuffled stream of full batches `((source, target_input), target_output)`, int32
    (B, S), (B, T), (B, T).

    The target input is the output shifted right behind BOS. The same seed gives the same stream,
    wherever it is entered.

    Attributes:
        pairs: `TokenizedPairs`.
        buckets: `Buckets` of them.
        order: `BatchOrder` of them.
    """

    pairs: TokenizedPairs
    buckets: Buckets
    order: BatchOrder

    def __getitem__(self, number):
        """Batch `number` of the stream, as NumPy arrays."""
        bucket, rows = self.order.batch(int(number))
        return _padded(
            self.pairs,
            rows,
            self.buckets.source_lengths[bucket],
            self.buckets.target_lengths[bucket],
        )

    @property
    def batches_per_epoch(self):
        """How many batches hold every pair once, rounded, at least 1."""
        return max(1, round(self.order.batches_per_epoch))

    def describe(self):
        """Batches and shapes in words."""
        return f"{self.batches_per_epoch:,} batches an epoch in {self.buckets.describe()}"

    def arrays(self, start=0):
        """The stream from batch `start` on as NumPy arrays, for any Keras backend."""
        return (self[number] for number in itertools.count(start))

    def dataset(self, start=0, replicas=1, first=0, here=1):
        """The stream from batch `start` on as a `tf.data.Dataset`.

        Args:
            start: a multiple of `replicas`.
            replicas: R, in the whole job: of every R batches in a row each replica takes one.
            first: number of this host's first replica among them.
            here: how many replicas this host has.
        """

        def load(count):
            number = start + count // here * replicas + first + count % here
            source, target, output = tf.numpy_function(
                lambda n: _flat(self[n]), [number], [tf.int32] * 3, stateful=False
            )
            return (
                tf.ensure_shape(source, (None, None)),
                tf.ensure_shape(target, (None, None)),
            ), tf.ensure_shape(output, (None, None))

        numbers = tf.data.Dataset.range(np.iinfo(np.int64).max // replicas - start)
        return numbers.map(load).prefetch(8)


def training_batches(pairs, batch_tokens, seed, weights=None, group=1, most_padding=MOST_PADDING):
    """Sort pairs into buckets, and put them into an order.

    Args:
        pairs: `TokenizedPairs`.
        batch_tokens: positions a side and batch, padding included.
        seed: of the order.
        weights: how often each pair comes in an epoch; None: once.
        group: so many batches in a row have one shape.
        most_padding: merge shapes while padding stays below this share.

    Returns:
        `TrainingBatches`.
    """
    buckets = _buckets(pairs, batch_tokens, most_padding)
    return TrainingBatches(
        pairs, buckets, BatchOrder(buckets.bucket_of, buckets.batch_sizes, seed, weights, group)
    )


def evaluation_batches(pairs, batch_tokens):
    """Every pair once, as a dataset in order within its bucket; the last batch of a bucket may be
    short.
    """
    buckets = _buckets(pairs, batch_tokens)

    def batches():
        for bucket, size in enumerate(buckets.batch_sizes):
            rows = np.flatnonzero(buckets.bucket_of == bucket)
            for start in range(0, len(rows), size):
                yield _padded(
                    pairs,
                    rows[start : start + size],
                    buckets.source_lengths[bucket],
                    buckets.target_lengths[bucket],
                )

    ids = tf.TensorSpec((None, None), tf.int32)
    dataset = tf.data.Dataset.from_generator(batches, output_signature=((ids, ids), ids))
    return dataset.apply(
        tf.data.experimental.assert_cardinality(buckets.batches_of_one_pass)
    ).prefetch(tf.data.AUTOTUNE)


def _buckets(pairs, batch_tokens, most_padding=MOST_PADDING):
    return bucket_pairs(pairs.sources.lengths, pairs.targets.lengths, batch_tokens, most_padding)


def _padded(pairs, rows, source_length, target_length):
    output = pairs.targets.padded(rows, target_length)
    shifted = np.concatenate([np.full((len(rows), 1), BOS, np.int32), output[:, :-1]], axis=1)
    return (pairs.sources.padded(rows, source_length), shifted), output


def _flat(batch):
    (source, target), output = batch
    return source, target, output
