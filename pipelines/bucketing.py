"""Which sentences share a batch (Vaswani et al. 2017, section 5.1: "batched together by approximate sequence length").

Pure arithmetic on lengths. A bucket is a rectangle of source and target lengths, and all its batches have one shape: the number of
compiled graphs on a backend that compiles by shape is the number of buckets.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The shapes of a run, and where each pair belongs.

    Attributes:
        source_lengths, target_lengths: padded lengths of each bucket, integers (buckets,).
        batch_sizes: sentences in a batch of each bucket, integers (buckets,).
        bucket_of: the bucket of each pair, integers (pairs,).
        tokens: source + target tokens of one pass, padding left out.
    """

    source_lengths: np.ndarray
    target_lengths: np.ndarray
    batch_sizes: np.ndarray
    bucket_of: np.ndarray
    tokens: int

    @property
    def steps_per_epoch(self):
        """How many full batches the pairs make on an endless stream, rounded, at least 1."""
        return max(1, round(float((np.bincount(self.bucket_of) / self.batch_sizes).sum())))

    @property
    def batches_of_one_pass(self):
        """How many batches the pairs make once through, the last of each bucket short."""
        return int(np.ceil(np.bincount(self.bucket_of) / self.batch_sizes).sum())

    def describe(self):
        """The shapes in words."""
        lengths = (self.source_lengths + self.target_lengths)[self.bucket_of]
        return f"{self.steps_per_epoch:,} batches an epoch in {len(self.batch_sizes)} shapes, {1 - self.tokens / lengths.sum():.1%} padding"


def boundaries(longest, first=4, growth=1.25):
    """Upper edges of the length buckets, each about `growth` times the one before.

    Args:
        longest: the greatest length, which becomes the last edge.
        first: the least edge.
        growth: factor, above 1; one less is about the worst share of padding.

    Returns:
        Increasing integers (edges,).

    Example:
        boundaries(20) -> 4 5 6 7 8 10 12 15 18 20
    """
    edges = [min(first, longest)]
    while edges[-1] < longest:
        edges.append(min(longest, max(edges[-1] + 1, int(edges[-1] * growth))))
    return np.array(edges)


def bucket_pairs(source_lengths, target_lengths, batch_tokens):
    """Sort pairs into buckets, and size each bucket's batch from a budget.

    A batch holds at most `batch_tokens` positions on either side, padding included, and at least one pair.

    Args:
        source_lengths, target_lengths: tokens of each pair, integers (pairs,), each at least 1.
        batch_tokens: the budget, positions a side.

    Returns:
        `Buckets`, of the occupied rectangles only.

    Raises:
        ValueError: if there is no pair, or the budget is below the longest side.
    """
    source_lengths, target_lengths = np.asarray(source_lengths), np.asarray(target_lengths)
    if not source_lengths.size:
        raise ValueError("There is no pair to make batches of.")
    longest = int(max(source_lengths.max(), target_lengths.max()))
    if batch_tokens < longest:
        raise ValueError(f"`batch_tokens` must hold the longest sentence, {longest} tokens. Received: batch_tokens={batch_tokens}.")
    edges = boundaries(longest)
    rectangles = np.stack([np.searchsorted(edges, source_lengths), np.searchsorted(edges, target_lengths)], axis=-1)
    occupied, bucket_of = np.unique(rectangles, axis=0, return_inverse=True)
    source_edges, target_edges = edges[occupied[:, 0]], edges[occupied[:, 1]]
    batch_sizes = batch_tokens // np.maximum(source_edges, target_edges)
    tokens = int(source_lengths.sum() + target_lengths.sum())
    return Buckets(source_edges, target_edges, batch_sizes, bucket_of.reshape(-1), tokens)
