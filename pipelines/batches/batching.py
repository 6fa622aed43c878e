"""Batches of examples for `model.fit`.

A graph of tf.data operations turns ids into batches without Python, so another host can run it.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from pipelines.batches.bucketing import MOST_PADDING, Buckets, bucket
from pipelines.batches.examples import Examples
from pipelines.batches.ordering import BatchOrder, by_stream

BATCHES_AHEAD = 8
# Batches whose rows are computed together, to share the cost of a hundred small operations.
ORDERED_AT_ONCE = 16
# tf.data must not rewrite a dataset's graph before it runs: it would copy all ids into it.
AS_WRITTEN = tf.data.Options()
AS_WRITTEN.experimental_optimization.apply_default_optimizations = False
# Its tuning thread can miss the end of an iterator, which then waits for up to a minute.
AS_WRITTEN.autotune.enabled = False


@dataclasses.dataclass(frozen=True)
class TrainingBatches:
    """An endless, shuffled stream of updates, each in P parts: batches, which are triples `(inputs,
    labels, weights)`.

    The same seed gives the same stream, wherever it is entered. The examples of an update, a batch
    of the `Buckets`, do not depend on P: replicas and accumulated batches share them.
    """

    examples: Examples
    buckets: Buckets
    order: BatchOrder
    parts: int = 1

    @property
    def updates_per_epoch(self) -> int:
        """The updates in which every example comes once, rounded, at least 1."""
        return max(1, round(self.order.batches_per_epoch))

    def describe(self) -> str:
        """Return the updates and shapes in words."""
        updates = self.updates_per_epoch
        rates = self.order.rates.sum(axis=1) / self.buckets.counts
        tokens = self.buckets.sums(self.examples.lengths) @ rates
        means = zip(tokens / self.order.batches_per_epoch, self.examples.sides, strict=True)
        size = " and ".join(f"{count:,.0f} {side}" for count, side in means)
        return (
            f"{updates:,} {'update' if updates == 1 else 'updates'} an epoch, of {size} tokens "
            f"each, in {self.buckets.describe()}"
        )

    def arrays(self, start: int = 0) -> Iterator[tuple]:
        """Yield the stream from part `start` on as NumPy arrays, for any Keras backend."""
        # A generator, which is what Keras' `fit` takes; it refuses tf.data's own iterator.
        yield from self.dataset(start).as_numpy_iterator()

    def dataset(
        self, start: int = 0, replicas: int = 1, first: int = 0, here: int = 1
    ) -> tf.data.Dataset:
        """Return the stream from part `start` on, a multiple of R, the replicas of the whole job.
        Of every R consecutive parts each takes one; this host has `here` of them, from `first` on.
        """
        epoch, before = self.order.locate(start // self.parts)
        epochs = tf.data.Dataset.range(epoch, np.iinfo(np.int64).max)
        places = epochs.flat_map(_in_graph(self._places))
        places = places.skip(before * self.parts + start % self.parts)
        if here < replicas:
            share = slice(first, first + here)
            places = places.batch(replicas)
            places = places.map(_in_graph(lambda *sides: [side[share] for side in sides])).unbatch()
        rows = places.batch(ORDERED_AT_ONCE).map(_in_graph(self._rows)).unbatch()
        batches = rows.map(
            _in_graph(self._batch), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
        return batches.apply(endless).prefetch(BATCHES_AHEAD).with_options(AS_WRITTEN)

    def _places(self, epoch):
        """Return for each part its bucket, and where in its bucket's stream it begins and ends."""
        buckets, begins = self.order.epoch(epoch)
        numbers = tf.range(tf.size(begins, tf.int64) * self.parts)
        buckets, begins = (tf.gather(side, numbers // self.parts) for side in (buckets, begins))
        part = numbers % self.parts
        sizes = tf.gather(self.buckets.batch_sizes, buckets)
        begins, ends = (begins + place * sizes // self.parts for place in (part, part + 1))
        return tf.data.Dataset.from_tensor_slices((buckets, begins, ends))

    def _rows(self, buckets, begins, ends):
        """Return buckets, examples and keys of several parts, the last two with a row per part."""
        sizes = ends - begins
        places = tf.ragged.range(begins, ends)
        bucket_of_place = tf.repeat(buckets, sizes)
        rows = places.with_values(self.order.examples(bucket_of_place, places.values))
        keys = self.examples.keys(bucket_of_place, places.values)
        return buckets, rows, *(places.with_values(numbers) for numbers in keys)

    def _batch(self, bucket, rows, *keys):
        sizes = self.buckets.batch_sizes
        if (sizes == sizes[0]).all() and not sizes[0] % self.parts:
            rows = tf.ensure_shape(rows, sizes[:1] // self.parts)
        return _load(self.examples, self.buckets, bucket, rows, *keys)


def training_batches(
    examples: Examples,
    batch_tokens: int,
    seed: int,
    weights: np.ndarray | None = None,
    parts: int = 1,
    most_padding: float = MOST_PADDING,
    alike: bool = False,
) -> TrainingBatches:
    """Sort examples into buckets, and put them into an order.

    Args:
        batch_tokens: mean tokens of an update on each side, without padding.
        seed: of the order.
        weights: how often each example comes in an epoch, (examples,); None: once.
        parts: P, the batches that an update is divided into, for replicas or for accumulation.
        most_padding: buckets are merged while the share of padding stays below this.
        alike: give each part the same number of examples, as static shapes require. Otherwise parts
            differ by one example where P does not divide an update.
    """
    multiple = parts if alike else 1
    folder = examples.folder
    buckets = bucket(examples.lengths, batch_tokens, most_padding, multiple=multiple, folder=folder)
    fewest = int(buckets.batch_sizes.min())
    if fewest < parts:
        raise ValueError(
            f"an update must have an example for each of its {parts} parts (replicas times "
            f"accumulated batches). Received: batch_tokens={batch_tokens}, which is {fewest} of "
            "the longest. Raise it, or train on fewer replicas."
        )
    order = BatchOrder(buckets.bucket_of, buckets.batch_sizes, seed, weights, folder)
    return TrainingBatches(examples, buckets, order, parts)


def evaluation_batches(
    examples: Examples, batch_tokens: int, most_padding: float = MOST_PADDING
) -> tf.data.Dataset:
    """Return every example once, in order within its bucket, as a dataset of triples `(inputs,
    labels, weights)` of known cardinality. The last batch of a bucket may be short.
    """
    buckets = bucket(examples.lengths, batch_tokens, most_padding)
    sizes = buckets.batch_sizes
    counts, rows = by_stream(buckets.bucket_of, len(sizes))
    ends = np.cumsum(counts)
    begins = np.concatenate([[0], ends[:-1]])
    places = [
        (number, begin, min(begin + sizes[number], ends[number]))
        for number in range(len(sizes))
        for begin in range(begins[number], ends[number], sizes[number])
    ]

    def batch(number, begin, end):
        return _load(examples, buckets, number, tf.cast(rows[begin:end], tf.int64))

    dataset = tf.data.Dataset.from_tensor_slices(tuple(np.array(places).T))
    return (
        dataset.map(_in_graph(batch), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        .prefetch(tf.data.AUTOTUNE)
        .with_options(AS_WRITTEN)
    )


def _load(examples, buckets, bucket, rows, *keys):
    """Load the batch of some rows of a bucket. A length that all buckets share is static."""
    lengths = [
        int(side[0]) if (side == side[0]).all() else tf.gather(side, bucket)
        for side in buckets.lengths.T
    ]
    return examples.batch(rows, lengths, *keys)


# Nothing in our functions needs AutoGraph, which would read and rewrite their source.
_in_graph = tf.autograph.experimental.do_not_convert
