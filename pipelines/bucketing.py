"""Which sentences share a batch (Vaswani et al. 2017, section 5.1: "batched together by approximate
sequence length").

Pure arithmetic on lengths. A bucket is a rectangle of source and target lengths, and all its
batches have one shape: the number of compiled graphs on a backend that compiles by shape is the
number of buckets.
"""

import dataclasses

import numpy as np

# Below this share buckets are merged: 22 shapes for Multi30k, where as many as there are rectangles
# would be 97 with 6.7 %.
MOST_PADDING = 0.08
# Where each shape is compiled by itself: 13 shapes.
MOST_PADDING_STATIC = 0.11


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
    def padding(self):
        """Share of the positions that hold no token, in [0, 1)."""
        return 1 - self.tokens / int(
            (self.source_lengths + self.target_lengths)[self.bucket_of].sum()
        )

    @property
    def batches_of_one_pass(self):
        """How many batches the pairs make once through, the last of each bucket short."""
        return int(np.ceil(np.bincount(self.bucket_of) / self.batch_sizes).sum())

    def describe(self):
        """The shapes in words."""
        return f"{len(self.batch_sizes)} shapes, {self.padding:.1%} padding"


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


def bucket_pairs(source_lengths, target_lengths, batch_tokens, most_padding=MOST_PADDING):
    """Sort pairs into buckets, and size each bucket's batch from a budget.

    A batch holds at most `batch_tokens` positions on either side, padding included, and at least
    one pair.

    Args:
        source_lengths, target_lengths: tokens of each pair, integers (pairs,), each at least 1.
        batch_tokens: the budget, positions a side.
        most_padding: buckets are merged, those first that cost the least, while padding stays below
            this share; 0: none is merged.

    Returns:
        `Buckets`, of the occupied rectangles only.

    Raises:
        ValueError: if there is no pair, or the budget is below the longest side.
    """
    source_lengths = np.asarray(source_lengths)
    target_lengths = np.asarray(target_lengths)
    if not source_lengths.size:
        raise ValueError("There is no pair to make batches of.")
    longest = int(max(source_lengths.max(), target_lengths.max()))
    if batch_tokens < longest:
        raise ValueError(
            f"`batch_tokens` must hold the longest sentence, {longest} tokens. Received: "
            f"batch_tokens={batch_tokens}."
        )
    edges = boundaries(longest)
    rectangles = np.searchsorted(edges, source_lengths) * len(edges) + np.searchsorted(
        edges, target_lengths
    )
    occupied, bucket_of = np.unique(rectangles, return_inverse=True)
    shapes = edges[np.stack(np.divmod(occupied, len(edges)), axis=-1)]
    tokens = int(source_lengths.sum() + target_lengths.sum())
    shapes, merged = merge(shapes, np.bincount(bucket_of), int(tokens / (1 - most_padding)))
    bucket_of = merged[bucket_of]
    return Buckets(
        shapes[:, 0], shapes[:, 1], batch_tokens // shapes.max(axis=1), bucket_of, tokens
    )


def merge(shapes, counts, most_positions):
    """Merge rectangles into fewer, two at a time, those first that add the fewest positions.

    Args:
        shapes: lengths of each side, integers (rectangles, 2).
        counts: pairs in each, integers (rectangles,).
        most_positions: what the pairs may fill in all, padding included; no merging goes beyond.

    Returns:
        The shapes that are left, and for each rectangle the number of its shape among them.
    """
    shapes, counts, merged = shapes.copy(), counts.copy(), np.arange(len(shapes))
    while len(shapes) > 1:
        union = np.maximum(shapes[:, None], shapes[None]).sum(axis=-1)
        size = shapes.sum(axis=-1)
        added = counts[:, None] * (union - size[:, None]) + counts[None] * (union - size[None])
        np.fill_diagonal(added, np.iinfo(added.dtype).max)
        keep, lose = sorted(np.unravel_index(added.argmin(), added.shape))
        if (counts * size).sum() + added[keep, lose] > most_positions:
            break
        shapes[keep] = np.maximum(shapes[keep], shapes[lose])
        counts[keep] += counts[lose]
        shapes = np.delete(shapes, lose, axis=0)
        counts = np.delete(counts, lose)
        merged = np.where(merged == lose, keep, merged - (merged > lose))
    return shapes, merged
