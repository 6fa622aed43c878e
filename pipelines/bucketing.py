"""Which examples share a batch (Vaswani et al. 2017, section 5.1: "batched together by approximate
sequence length").

Pure arithmetic on lengths. An example has one length a side: a pair of sentences has two sides. A
bucket is a rectangle of lengths, and all its batches have one shape: a backend that compiles a
graph for each shape compiles as many graphs as there are buckets.
"""

import dataclasses

import numpy as np

# Buckets are merged while padding stays below this share. Multi30k has 22 shapes then; unmerged it
# would have 97, with 6.7 % padding.
MOST_PADDING = 0.08
# The share where each shape is compiled by itself: Multi30k has 13 shapes then.
MOST_PADDING_STATIC = 0.11


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The shapes of a run, and where each example belongs. Shapes: B buckets, sides.

    Attributes:
        lengths: padded lengths, integers (B, sides).
        batch_sizes: examples in a batch of each bucket, integers (B,).
        bucket_of: the bucket of each example, integers (examples,).
        tokens: tokens of one pass over all sides, padding left out.
    """

    lengths: np.ndarray
    batch_sizes: np.ndarray
    bucket_of: np.ndarray
    tokens: int

    @property
    def padding(self) -> float:
        """Share of the positions that hold no token, in [0, 1)."""
        return 1 - self.tokens / int(self.lengths.sum(axis=1)[self.bucket_of].sum())

    @property
    def batches_of_one_pass(self) -> int:
        """How many batches the examples make once through, the last of each bucket short."""
        return int(np.ceil(np.bincount(self.bucket_of) / self.batch_sizes).sum())

    def describe(self) -> str:
        """The shapes in words."""
        return f"{len(self.batch_sizes)} shapes, {self.padding:.1%} padding"


def boundaries(longest: int, first: int = 4, growth: float = 1.25) -> np.ndarray:
    """The upper edges of the length buckets, each about `growth` times the one before.

    Args:
        longest: the greatest length, which becomes the last edge.
        first: the least edge.
        growth: factor, above 1; `growth - 1` is about the worst share of padding.

    Returns:
        Increasing integers (edges,).

    Example:
        boundaries(20) -> 4 5 6 7 8 10 12 15 18 20
    """
    edges = [min(first, longest)]
    while edges[-1] < longest:
        edges.append(min(longest, max(edges[-1] + 1, int(edges[-1] * growth))))
    return np.array(edges)


def bucket(lengths, batch_tokens: int, most_padding: float = MOST_PADDING) -> Buckets:
    """Sort examples into buckets, and size each bucket's batch from a budget.

    A batch holds at most `batch_tokens` positions on each side, padding included, and at least one
    example.

    Args:
        lengths: tokens of each side of each example, integers (examples, sides), each at least 1.
        batch_tokens: the budget, positions a side.
        most_padding: buckets are merged, those first that cost the least, while padding stays below
            this share; 0: none is merged.

    Returns:
        `Buckets`, of the occupied rectangles only.

    Raises:
        ValueError: if there is no example, or the budget is below the longest side.
    """
    lengths = np.asarray(lengths)
    if not lengths.size:
        raise ValueError("There is no example to make batches of.")
    longest = int(lengths.max())
    if batch_tokens < longest:
        raise ValueError(
            f"`batch_tokens` must hold the longest example, {longest} tokens. Received: "
            f"batch_tokens={batch_tokens}. Raise it, or lower the greatest length."
        )
    edges = boundaries(longest)
    cells = np.searchsorted(edges, lengths.T)
    grid = (len(edges),) * len(cells)
    occupied, bucket_of = np.unique(np.ravel_multi_index(cells, grid), return_inverse=True)
    shapes = edges[np.stack(np.unravel_index(occupied, grid), axis=-1)]
    tokens = int(lengths.sum())
    shapes, merged = merge(shapes, np.bincount(bucket_of), int(tokens / (1 - most_padding)))
    return Buckets(shapes, batch_tokens // shapes.max(axis=1), merged[bucket_of], tokens)


def merge(
    shapes: np.ndarray, counts: np.ndarray, most_positions: int
) -> tuple[np.ndarray, np.ndarray]:
    """Merge rectangles into fewer, two at a time, those first that add the fewest positions.

    Args:
        shapes: lengths of each side, integers (rectangles, sides).
        counts: examples in each, integers (rectangles,).
        most_positions: limit for the positions of all examples, padding included.

    Returns:
        The shapes that are left, and for each rectangle the number of its shape among them.
    """
    shapes = shapes.copy()
    counts = counts.copy()
    merged = np.arange(len(shapes))
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
