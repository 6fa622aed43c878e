"""The order in which examples are trained on: an endless stream of full batches that can be entered
at any place.

Each bucket has its own stream: its examples in one random order after another, cut into full
batches; what does not fill a batch in one epoch waits for the next. Epoch e of the run holds the
batches that its examples complete, with all buckets mixed. Everything follows from the seed by
counting, so that an interrupted run resumes at batch n without replaying those before.

The counting is arithmetic on tensors, and so part of a tf.data graph. Shapes: B buckets; K kinds of
examples, one for each weight; L places in a stream.
"""

import bisect
import math

import numpy as np
import tensorflow as tf

from pipelines.batches.bucketing import ROWS
from pipelines.random_numbers import key, permuted
from pipelines.vocabularies.token_ids import as_tensor, empty_array

# The purposes of random numbers.
ORDER, MIX, BATCHES = range(3)
# All datasets call one graph, because tracing it takes as long as the rest of a dataset.
PLACES = [*map(tf.TensorSpec, ([None], None, None), (tf.int64, tf.int64, tf.uint64))]
permuted = tf.function(permuted, PLACES, autograph=False)


class BatchOrder:
    """The examples of batch 0, 1, 2 ..., by their buckets and a seed of at least 0. Weights say how
    often each example comes in an epoch: positive numbers of few different values, where 0.5 is
    every second epoch; None: once. A file in `folder` holds the order; None: it is in memory.
    """

    def __init__(self, bucket_of, batch_sizes, seed: int, weights=None, folder=None):
        bucket_of = np.asarray(bucket_of)
        self.batch_sizes = np.asarray(batch_sizes, np.int64)
        self.seed = seed
        kinds, kind_of = (
            (np.ones(1), 0) if weights is None else np.unique(weights, return_inverse=True)
        )
        self.kinds = len(kinds)
        stream_of = bucket_of
        if self.kinds > 1:
            stream_of = bucket_of.astype(np.int64) * self.kinds + kind_of
        # All examples, bucket by bucket and there kind by kind.
        counts, self._examples = by_stream(stream_of, len(self.batch_sizes) * self.kinds, folder)
        # How many examples of each kind an epoch adds to a bucket's stream: float64 (B, K).
        self.rates = kinds * counts.reshape(-1, self.kinds)
        with tf.device("CPU:0"):
            self._counts = tf.constant(counts)
            self._begins = tf.constant(np.cumsum(counts) - counts)

    @property
    def batches_per_epoch(self) -> float:
        """The average number of batches of an epoch; it need not be whole."""
        return float((self.rates.sum(axis=1) / self.batch_sizes).sum())

    def locate(self, number: int) -> tuple[int, int]:
        """Return the epoch of batch `number` of the stream, and its number within the epoch."""
        # The estimate is never too late, except for rounding, because it counts what waits for a
        # full batch, at most so many batches:
        waiting = (1 + self.kinds / self.batch_sizes).sum()
        low = max(0, int(number / self.batches_per_epoch) - 1)
        high = low + 4 + math.ceil(waiting / self.batches_per_epoch)
        epoch = low + bisect.bisect_right(range(low, high), number, key=self._batches_before) - 1
        return epoch, number - self._batches_before(epoch)

    def _batches_before(self, epoch):
        """Return how many batches all buckets have filled when an epoch begins."""
        return int((np.floor(self.rates * epoch).sum(axis=1) // self.batch_sizes).sum())

    def epoch(self, number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the batches of an epoch, an int64 scalar, in order: the bucket of each, and where
        in that bucket's stream it begins; int64 (batches,).
        """
        first = self._batches_filled(number)
        counts = self._batches_filled(number + 1) - first
        total = tf.reduce_sum(counts)
        # Bucket by bucket, the batches in the order of their streams.
        buckets = tf.repeat(tf.range(len(self.batch_sizes), dtype=tf.int64), counts)
        batches = tf.range(total) + tf.gather(first - tf.cumsum(counts, exclusive=True), buckets)
        # Each bucket has random slots in the epoch, which its batches fill in order.
        slots = permuted(tf.range(total), tf.maximum(total, 1), key(self.seed, BATCHES, number))
        order = tf.argsort(tf.sort(buckets * total + slots) - buckets * total)
        buckets = tf.gather(buckets, order)
        return buckets, tf.gather(batches, order) * tf.gather(self.batch_sizes, buckets)

    def _batches_filled(self, epoch):
        """Return how many batches each bucket has filled when an epoch begins, int64 (B,)."""
        counts = tf.floor(self.rates * tf.cast(epoch, tf.float64))
        return tf.cast(tf.reduce_sum(counts, axis=1), tf.int64) // self.batch_sizes

    def examples(self, bucket: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """Return the numbers of the examples at places (L,) of the buckets' streams, int64 (L,)."""
        rates = tf.gather(self.rates, bucket)
        epoch = self._epoch_of(places, rates)
        # How many examples of each kind come before the epoch, and in it: int64 (L, K).
        before = _count_before(rates, epoch)
        counts = _count_before(rates, epoch + 1) - before
        place = places - tf.reduce_sum(before, axis=1)
        ends = tf.cumsum(counts, axis=1)
        if self.kinds > 1:
            place = permuted(place, ends[:, -1], key(self.seed, MIX, bucket, epoch))
        kind = tf.reduce_sum(tf.cast(ends <= place[:, None], tf.int64), axis=1)
        place += tf.gather(before + counts - ends, kind, batch_dims=1)
        # The examples of a kind come in laps, each in an order of its own.
        stream = bucket * self.kinds + kind
        count = tf.gather(self._counts, stream)
        lap = place // count
        place = permuted(place - lap * count, count, key(self.seed, ORDER, stream, lap))
        rows = tf.gather(self._examples, tf.gather(self._begins, stream) + place)
        return tf.cast(rows, tf.int64)

    def _epoch_of(self, places, rates):
        """Return the epochs that places of a stream belong to, int64 (L,)."""
        # Except for rounding, the estimate is never too late, because it counts fractions of
        # examples, and too early by at most the epochs in which K kinds give one example each.
        totals = self.rates.sum(axis=1)
        late = 4 + self.kinds / totals[totals > 0].min()
        epoch = tf.cast(tf.cast(places, tf.float64) / tf.reduce_sum(rates, axis=-1), tf.int64)
        epoch = tf.maximum(epoch - 1, 0)
        for bit in reversed(range(math.ceil(math.log2(late)))):
            later = epoch + 2**bit
            has_begun = tf.reduce_sum(_count_before(rates, later), axis=1) <= places
            epoch = tf.where(has_begun, later, epoch)
        return epoch


def by_stream(stream_of, streams: int, folder=None) -> tuple[np.ndarray, tf.Tensor]:
    """Return how many examples each stream has, int64 (streams,); and the numbers of all examples,
    stream by stream, increasing there, a tensor of small integers in memory or in a file.
    """
    parts = [slice(start, start + ROWS) for start in range(0, len(stream_of), ROWS)]
    counts = [np.bincount(stream_of[part], minlength=streams) for part in parts]
    total = np.sum(counts, axis=0)
    rows = empty_array(len(stream_of), np.min_scalar_type(len(stream_of)), folder)
    begins = np.cumsum(total) - total
    for part, count in zip(parts, counts, strict=True):
        order = np.argsort(stream_of[part], kind="stable")
        places = np.arange(len(order)) + np.repeat(begins - np.cumsum(count) + count, count)
        rows[places] = part.start + order
        begins += count
    return total, as_tensor(rows)


def _count_before(rates, epoch):
    """Count the examples of each kind before an epoch, int64 (L, K), by rates (K,) or (L, K)."""
    return tf.cast(tf.floor(rates * tf.cast(epoch, tf.float64)[:, None]), tf.int64)
