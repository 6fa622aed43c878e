"""In which order examples are trained on: an endless stream of full batches that can be entered at
any place.

Each bucket has a stream of its own: its examples in one random order after another, cut into full
batches; what does not fill a batch in one epoch waits for the next. Epoch e of the run holds the
batches that its examples complete, those of all buckets mixed. All of it follows from the seed by
counting, so that an interrupted run resumes at batch n without replaying those before.

The counting is arithmetic on tensors, and so a part of a tf.data graph. Shapes: B buckets; K kinds
of examples, each of one weight; L places in a stream.
"""

import bisect
import math

import numpy as np
import tensorflow as tf

from pipelines.batches.bucketing import ROWS
from pipelines.random_numbers import key, permuted
from pipelines.vocabularies.token_ids import as_tensor, room

# What a random number is drawn for.
ORDER, MIX, BATCHES = range(3)


class BatchOrder:
    """Which examples make batch 0, 1, 2 ... of buckets, by a seed of at least 0. Weights say how
    often each example comes in an epoch, positive, of few different values: 0.5 is every second
    epoch; None: once. The file that holds the order lies in the folder; None: memory holds it.
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
        """How many batches an epoch holds on average; it need not be whole."""
        return float((self.rates.sum(axis=1) / self.batch_sizes).sum())

    def locate(self, number: int) -> tuple[int, int]:
        """Find batch `number` of the stream: its epoch, and how many of that come before it."""
        # The estimate is never too late but for rounding, since what waits for a full batch is not
        # counted yet. At most so many epochs' worth of batches wait:
        waiting = (1 + self.kinds / self.batch_sizes).sum()
        low = max(0, int(number / self.batches_per_epoch) - 1)
        high = low + 4 + math.ceil(waiting / self.batches_per_epoch)
        epoch = low + bisect.bisect_right(range(low, high), number, key=self._batches_before) - 1
        return epoch, number - self._batches_before(epoch)

    def _batches_before(self, epoch):
        """How many batches all buckets have filled when an epoch begins."""
        return int((np.floor(self.rates * epoch).sum(axis=1) // self.batch_sizes).sum())

    def epoch(self, number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The batches of one epoch, an int64 scalar, in order: the bucket of each, and where in
        that bucket's stream it begins; int64 (batches,).
        """
        first = self._batches_filled(number)
        counts = self._batches_filled(number + 1) - first
        total = tf.reduce_sum(counts)
        # Bucket by bucket, the batches in the order of their streams.
        buckets = tf.repeat(tf.range(len(self.batch_sizes), dtype=tf.int64), counts)
        batches = tf.range(total) + tf.gather(first - tf.cumsum(counts, exclusive=True), buckets)
        # Each bucket has random slots of the epoch, and fills them from the first to the last.
        slots = permuted(tf.range(total), tf.maximum(total, 1), key(self.seed, BATCHES, number))
        order = tf.argsort(tf.sort(buckets * total + slots) - buckets * total)
        buckets = tf.gather(buckets, order)
        return buckets, tf.gather(batches, order) * tf.gather(self.batch_sizes, buckets)

    def _batches_filled(self, epoch):
        """How many batches each bucket has filled when an epoch begins, int64 (B,)."""
        came = tf.floor(self.rates * tf.cast(epoch, tf.float64))
        return tf.cast(tf.reduce_sum(came, axis=1), tf.int64) // self.batch_sizes

    def examples(self, bucket: tf.Tensor, places: tf.Tensor) -> tf.Tensor:
        """Numbers of the examples, int64 (L,), at some places (L,) of the streams of buckets."""
        rates = tf.gather(self.rates, bucket)
        epoch = self._epoch_of(places, rates)
        # What each kind has given before the epoch, and what it gives in it: int64 (L, K).
        before = _given(rates, epoch)
        given = _given(rates, epoch + 1) - before
        place = places - tf.reduce_sum(before, axis=1)
        if self.kinds > 1:
            place = permuted(
                place, tf.reduce_sum(given, axis=1), key(self.seed, MIX, bucket, epoch)
            )
        ends = tf.cumsum(given, axis=1)
        kind = tf.reduce_sum(tf.cast(ends <= place[:, None], tf.int64), axis=1)
        place += tf.gather(before + given - ends, kind, batch_dims=1)
        # Examples of one kind come in laps, each in an order of its own.
        stream = bucket * self.kinds + kind
        count = tf.gather(self._counts, stream)
        lap = place // count
        place = permuted(place - lap * count, count, key(self.seed, ORDER, stream, lap))
        rows = tf.gather(self._examples, tf.gather(self._begins, stream) + place)
        return tf.cast(rows, tf.int64)

    def _epoch_of(self, places, rates):
        """The epochs that give some places of a stream, int64 (L,)."""
        # Rounding apart, the estimate is never too late, for it counts fractions of examples; nor
        # earlier than the time in which K kinds give an example each.
        totals = self.rates.sum(axis=1)
        late = 4 + self.kinds / totals[totals > 0].min()
        epoch = tf.cast(tf.cast(places, tf.float64) / tf.reduce_sum(rates, axis=-1), tf.int64)
        epoch = tf.maximum(epoch - 1, 0)
        for bit in reversed(range(math.ceil(math.log2(late)))):
            later = epoch + 2**bit
            is_given = tf.reduce_sum(_given(rates, later), axis=1) <= places
            epoch = tf.where(is_given, later, epoch)
        return epoch


def by_stream(stream_of, streams: int, folder=None) -> tuple[np.ndarray, tf.Tensor]:
    """How many examples each stream has, int64 (streams,); and the numbers of all examples, stream
    by stream and increasing there, a tensor of small integers in memory or in a file of a folder.
    """
    parts = [slice(start, start + ROWS) for start in range(0, len(stream_of), ROWS)]
    counts = [np.bincount(stream_of[part], minlength=streams) for part in parts]
    total = np.sum(counts, axis=0)
    rows = room(len(stream_of), np.min_scalar_type(len(stream_of)), folder)
    begins = np.cumsum(total) - total
    for part, count in zip(parts, counts, strict=True):
        order = np.argsort(stream_of[part], kind="stable")
        places = np.arange(len(order)) + np.repeat(begins - np.cumsum(count) + count, count)
        rows[places] = part.start + order
        begins += count
    return total, as_tensor(rows)


def _given(rates, epoch):
    """Examples of each kind that come before an epoch, int64 (L, K), by rates (K,) or (L, K)."""
    return tf.cast(tf.floor(rates * tf.cast(epoch, tf.float64)[:, None]), tf.int64)
