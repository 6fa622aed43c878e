"""In which order pairs are trained on: an endless stream of full batches that can be entered at any
place.

Each bucket has a stream of its own: its pairs in one random order after another, cut into full
batches; what does not fill a batch in one epoch waits for the next. Epoch e of the run holds, the
buckets shuffled, the batches that its pairs complete. All of it follows from (seed, epoch, bucket)
by counting, so that an interrupted run goes on at batch number n without replaying those before,
and so that R replicas take the batches that one replica would take in R times as many.
"""

import functools

import numpy as np

ORDER, MIX, BATCHES = range(3)


class BatchOrder:
    """Which pairs make batch 0, 1, 2 ...

    Args:
        bucket_of: the bucket of each pair, integers (pairs,).
        batch_sizes: pairs in a batch of each bucket, integers (buckets,).
        seed: of the order, at least 0.
        weights: how often each pair comes in an epoch, positive (pairs,): 0.5 is every second
            epoch. None: once.
        group: so many batches in a row come from one bucket. Replicas that run one compiled program
            need one shape.
    """

    def __init__(self, bucket_of, batch_sizes, seed, weights=None, group=1):
        self.seed = seed
        self.group = group
        self.sizes = np.asarray(batch_sizes, np.int64) * group
        self.laps = _laps(np.asarray(bucket_of, np.int64), weights, len(self.sizes))
        self._streams = functools.lru_cache(maxsize=4)(self._make_streams)
        self._epoch = functools.lru_cache(maxsize=2)(self._make_epoch)

    @property
    def batches_per_epoch(self):
        """How many batches an epoch holds on average; it need not be whole."""
        pairs = [sum(weight * len(members) for weight, members in laps) for laps in self.laps]
        return float((pairs / self.sizes).sum()) * self.group

    def batch(self, number):
        """Batch `number` of the stream.

        Returns:
            Its bucket, and the indices of its pairs, int64 (batch size,).
        """
        group, part = divmod(number, self.group)
        epoch = self._epoch_of(group)
        buckets, batches = self._epoch(epoch)
        place = group - self._groups_before(epoch)
        return int(buckets[place]), batches[place].reshape(self.group, -1)[part]

    def _pairs_before(self, epoch, bucket):
        """How long the bucket's stream is when the epoch begins."""
        return sum(_seen(weight, members, epoch) for weight, members in self.laps[bucket])

    def _make_streams(self, epoch):
        """Length of each bucket's stream when the epoch begins."""
        return np.array([self._pairs_before(epoch, bucket) for bucket in range(len(self.sizes))])

    def _groups_before(self, epoch):
        return int((self._streams(epoch) // self.sizes).sum())

    def _epoch_of(self, group):
        # Never too late, for what waits for a full batch is not counted yet.
        epoch = int(group / (self.batches_per_epoch / self.group))
        while self._groups_before(epoch + 1) <= group:
            epoch += 1
        return epoch

    def _make_epoch(self, epoch):
        """All batches of an epoch: their buckets, and the pairs of each."""
        first, last = (self._streams(e) // self.sizes for e in (epoch, epoch + 1))
        buckets = self._random(BATCHES, epoch).permutation(
            np.repeat(np.arange(len(self.sizes)), last - first)
        )
        streams = [
            iter(
                self._stream(bucket, first[bucket] * size, last[bucket] * size, epoch).reshape(
                    -1, size
                )
            )
            for bucket, size in enumerate(self.sizes)
        ]
        return buckets, [next(streams[bucket]) for bucket in buckets]

    def _stream(self, bucket, start, stop, epoch):
        """The pairs from `start` to `stop` of a bucket's stream, which ends in this epoch."""
        if start == stop:
            return np.zeros(0, np.int64)
        parts = []
        end = self._pairs_before(epoch + 1, bucket)
        while end > start:
            parts.append(self._one_epoch_of(bucket, epoch))
            end -= len(parts[-1])
            epoch -= 1
        return np.concatenate(parts[::-1])[start - end : stop - end]

    def _one_epoch_of(self, bucket, epoch):
        """The pairs that an epoch adds to the bucket's stream."""
        parts = []
        for kind, (weight, members) in enumerate(self.laps[bucket]):
            start = _seen(weight, members, epoch)
            stop = _seen(weight, members, epoch + 1)
            laps = range(start // len(members), -(-stop // len(members)))
            orders = [
                members[self._random(ORDER, lap, bucket, kind).permutation(len(members))]
                for lap in laps
            ]
            if orders:
                offset = laps[0] * len(members)
                parts.append(np.concatenate(orders)[start - offset : stop - offset])
        if len(parts) == 1:
            return parts[0]
        mixed = np.concatenate([np.zeros(0, np.int64), *parts])
        return mixed[self._random(MIX, epoch, bucket).permutation(len(mixed))]

    def _random(self, *place):
        return np.random.default_rng([self.seed, *place])


def _laps(bucket_of, weights, buckets):
    """For each bucket (weight, indices of its pairs of that weight): such pairs come in laps, each
    lap in an order of its own.
    """
    kinds, kind_of = (np.ones(1), 0) if weights is None else np.unique(weights, return_inverse=True)
    place_of = bucket_of * len(kinds) + kind_of
    members = np.split(
        np.argsort(place_of, kind="stable"),
        np.cumsum(np.bincount(place_of, minlength=buckets * len(kinds)))[:-1],
    )
    return [
        [
            (weight, pairs)
            for weight, pairs in zip(kinds, members[bucket * len(kinds) :], strict=False)
            if len(pairs)
        ]
        for bucket in range(buckets)
    ]


def _seen(weight, members, epoch):
    """How many pairs have come when an epoch begins; of weight 1, all of them once an epoch."""
    return int(weight * len(members) * epoch)
