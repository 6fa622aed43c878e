"""Examples to the batches that `model.fit` takes.

From ids to batches goes a graph of tf.data operations without Python, so another host can run it.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from pipelines.batches.bucketing import MOST_PADDING, Buckets, bucket
from pipelines.batches.examples import Examples
from pipelines.batches.ordering import BatchOrder, by_stream

BATCHES_AHEAD = 8
# Batches whose rows are computed together: a hundred small operations then cost each little.
ORDERED_AT_ONCE = 16
# tf.data does not rewrite a dataset's graph before it runs: for that it would copy all ids into it.
AS_WRITTEN = tf.data.Options()
AS_WRITTEN.experimental_optimization.apply_default_optimizations = False
# Its tuning thread can miss that an iterator ends, which then waits for it, for up to a minute.
AS_WRITTEN.autotune.enabled = False


@dataclasses.dataclass(frozen=True)
class TrainingBatches:
    """An endless, shuffled stream of updates, each in P parts: batches that are triples `(inputs,
    labels, weights)`.

    The same seed gives the same stream, wherever it is entered. The examples of an update, the
    batches of the `Buckets`, do not depend on P: replicas and accumulated batches share them.
    """

    examples: Examples
    buckets: Buckets
    order: BatchOrder
    parts: int = 1

    @property
    def updates_per_epoch(self) -> int:
        """How many updates hold every example once, rounded, at least 1."""
        return max(1, round(self.order.batches_per_epoch))

    def describe(self) -> str:
        """Updates and shapes in words."""
        updates = self.updates_per_epoch
        rates = self.order.rates.sum(axis=1) / self.buckets.counts
        tokens = self.buckets.sums(self.examples.lengths) @ rates
        of_sides = zip(tokens / self.order.batches_per_epoch, self.examples.sides, strict=True)
        size = " and ".join(f"{count:,.0f} {side}" for count, side in of_sides)
        return (
            f"{updates:,} {'update' if updates == 1 else 'updates'} an epoch, of {size} tokens "
            f"each, in {self.buckets.describe()}"
        )

    def arrays(self, start: int = 0) -> Iterator[tuple]:
        """The stream from part `start` on as triples of NumPy arrays, for any Keras backend."""
        # A generator, which is what Keras' `fit` takes; it refuses tf.data's own iterator.
        yield from self.dataset(start).as_numpy_iterator()

    def dataset(
        self, start: int = 0, replicas: int = 1, first: int = 0, here: int = 1
    ) -> tf.data.Dataset:
        """The stream from part `start` on, a multiple of the R replicas of the whole job: of every
        R parts in a row each takes one. This host has those from `first` on, `here` of them.
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
        """Of each part: its bucket, and where in that bucket's stream it begins and ends."""
        buckets, begins = self.order.epoch(epoch)
        buckets, begins = (tf.repeat(side, self.parts) for side in (buckets, begins))
        part = tf.math.floormod(tf.range(tf.size(begins, tf.int64)), self.parts)
        sizes = tf.gather(self.buckets.batch_sizes, buckets)
        ends = begins + (part + 1) * sizes // self.parts
        return tf.data.Dataset.from_tensor_slices(
            (buckets, begins + part * sizes // self.parts, ends)
        )

    def _rows(self, buckets, begins, ends):
        """The examples of several parts, a ragged tensor with one row a part."""
        sizes = ends - begins
        places = tf.ragged.range(begins, ends)
        of_places = tf.repeat(buckets, sizes)
        rows = places.with_values(self.order.examples(of_places, places.values))
        keys = self.examples.keys(of_places, places.values)
        return buckets, rows, *(places.with_values(one) for one in keys)

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
        batch_tokens: tokens a side of an update, padding left out: the mean over all updates.
        seed: of the order.
        weights: how often each example comes in an epoch, (examples,); None: once.
        parts: P, batches that share an update, by replicas or one after another.
        most_padding: buckets are merged while padding stays below this share.
        alike: give each part the same number of examples, as static shapes need it. Else they
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
    """Every example once, in order within its bucket, as a dataset of triples `(inputs, labels,
    weights)` that knows its number of batches; the last batch of a bucket may be short.
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
    """The batch of some rows of one bucket, each dimension static where all buckets share it."""
    lengths = [
        int(of_all[0]) if (of_all == of_all[0]).all() else tf.gather(of_all, bucket)
        for of_all in buckets.lengths.T
    ]
    return examples.batch(rows, lengths, *keys)


# Nothing in our functions needs AutoGraph, which would read and rewrite their source.
_in_graph = tf.autograph.experimental.do_not_convert
