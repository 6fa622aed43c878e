"""Which examples share a batch (Vaswani et al. 2017, section 5.1: "batched together by approximate
sequence length").

Pure arithmetic on lengths. An example has a length on each side: a pair of sentences has two sides.
A bucket is a rectangle of lengths, and all its batches have one shape: a backend that compiles a
graph for each shape compiles one for each bucket. Section 5.1 counts tokens, so we do not count
padding: a batch has "approximately 25000 source tokens and 25000 target tokens".
"""

import dataclasses

import numpy as np

from pipelines.vocabularies.token_ids import empty_array

# Buckets are merged while padding stays below this share, and as long as more than MOST_SHAPES are
# left. 4.5 million pairs with lengths like those of WMT 2014 take 40 shapes with 9.5 % padding.
MOST_PADDING = 0.08
MOST_SHAPES = 40
# The share for static shapes, which TensorFlow compiles one by one, and where another backend
# compiles each by XLA for seconds: there, fewer shapes are worth more padding.
MOST_PADDING_STATIC = 0.1
MOST_PADDING_COMPILED = 0.25
# The smallest edge of the length buckets, and the ratio of an edge to the one before. GROWTH - 1 is
# about the worst share of padding.
FIRST_EDGE = 4
GROWTH = 1.15
# Examples that are processed together.
ROWS = 2**20
# More positions than any merge adds: marks a merge that must not happen.
NEVER = np.iinfo(np.int64).max


@dataclasses.dataclass(frozen=True)
class Buckets:
    """The shapes of a run, and where each example belongs, as arrays of integers: padded lengths
    (B, sides) and batch sizes (B,) of B buckets; the bucket of each example; the number of examples
    in each bucket (B,); and the tokens of each side in one pass, without padding, (sides,).
    """

    lengths: np.ndarray
    batch_sizes: np.ndarray
    bucket_of: np.ndarray
    counts: np.ndarray
    tokens: np.ndarray

    @property
    def padding(self) -> float:
        """The share of positions that hold no token, in [0, 1)."""
        return 1 - int(self.tokens.sum()) / int(self.lengths.sum(axis=1) @ self.counts)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum columns of values (examples, columns) over the buckets: float64 (columns, B)."""
        sums = np.zeros((values.shape[1], len(self.batch_sizes)))
        for start in range(0, len(values), ROWS):
            part = slice(start, start + ROWS)
            for total, column in zip(sums, values[part].T, strict=True):
                total += np.bincount(self.bucket_of[part], column, minlength=len(total))
        return sums

    def describe(self) -> str:
        """Return the shapes in words."""
        shapes = len(self.batch_sizes)
        return f"{shapes} {'shape' if shapes == 1 else 'shapes'}, {self.padding:.1%} padding"


def boundaries(longest: int) -> np.ndarray:
    """Return the upper edges of the length buckets, increasing integers up to `longest`, each about
    `GROWTH` times the one before: for 20, they are 4 5 6 7 8 9 10 11 12 13 14 16 18 20.
    """
    edges = [min(FIRST_EDGE, longest)]
    while edges[-1] < longest:
        edges.append(min(longest, max(edges[-1] + 1, int(edges[-1] * GROWTH))))
    return np.array(edges)


def bucket(
    lengths,
    batch_tokens: int,
    most_padding: float = MOST_PADDING,
    most_shapes: int = MOST_SHAPES,
    multiple: int = 1,
    folder=None,
) -> Buckets:
    """Sort examples into buckets, and size each bucket's batch.

    The batch size of a bucket is the multiple of `multiple` that comes nearest to `batch_tokens`
    tokens on average, counted without padding as the mean of the sides.

    Args:
        lengths: tokens of each side of each example, integers (examples, sides), each at least 1.
        most_padding: buckets are merged, cheapest first, while padding stays below this share.
        most_shapes: buckets are merged until at most so many are left, whatever the padding.
        folder: for files with the arrays of all examples; None: these are in memory.
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
    grid = (len(edges),) * lengths.shape[1]
    # Some rows at a time, and small integers: with many examples, each byte counts.
    parts = [slice(start, start + ROWS) for start in range(0, len(lengths), ROWS)]
    cell_of = empty_array(len(lengths), np.min_scalar_type(int(np.prod(grid))), folder)
    for part in parts:
        cell_of[part] = np.ravel_multi_index(np.searchsorted(edges, lengths[part].T), grid)
    counts = sum(np.bincount(cell_of[part], minlength=np.prod(grid)) for part in parts)
    occupied = np.flatnonzero(counts)
    shapes = edges[np.stack(np.unravel_index(occupied, grid), axis=-1)]
    tokens = lengths.sum(axis=0)
    most_positions = int(tokens.sum() / (1 - most_padding))
    shapes, merged = merge(shapes, counts[occupied], most_positions, most_shapes)
    bucket_of_cell = np.zeros(len(counts), np.min_scalar_type(len(shapes)))
    bucket_of_cell[occupied] = merged
    bucket_of = empty_array(len(lengths), bucket_of_cell.dtype, folder)
    sums = np.zeros((2, len(shapes)))
    for part in parts:
        bucket_of[part] = bucket_of_cell[cell_of[part]]
        for total, weights in zip(sums, (lengths[part].mean(axis=1), None), strict=True):
            total += np.bincount(bucket_of[part], weights, minlength=len(shapes))
    mean_tokens = sums[0] / sums[1]
    sizes = np.maximum(np.rint(batch_tokens / mean_tokens / multiple), 1).astype(np.int64)
    return Buckets(shapes, sizes * multiple, bucket_of, sums[1].astype(np.int64), tokens)


def merge(
    shapes: np.ndarray, counts: np.ndarray, most_positions: int, most_shapes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Merge rectangles, lengths (rectangles, sides) with counts of examples, two at a time, those
    first that add the fewest positions. All examples with padding may then take `most_positions`,
    or more as long as there are more than `most_shapes` rectangles.

    Returns the shapes that are left, and for each rectangle the number of its shape among them.
    """
    shapes = shapes.copy()
    counts = counts.copy()
    merged = np.arange(len(shapes))
    positions = int((counts * shapes.sum(axis=-1)).sum())
    is_left = np.ones(len(shapes), bool)
    added = np.stack([_added(shapes, counts, number) for number in range(len(shapes))])
    np.fill_diagonal(added, NEVER)
    while is_left.sum() > 1:
        keep, lose = sorted(np.unravel_index(added.argmin(), added.shape))
        positions += int(added[keep, lose])
        if positions > most_positions and is_left.sum() <= most_shapes:
            break
        shapes[keep] = np.maximum(shapes[keep], shapes[lose])
        counts[keep] += counts[lose]
        is_left[lose] = False
        merged[merged == lose] = keep
        added[keep] = added[:, keep] = _added(shapes, counts, keep)
        added[keep, keep] = NEVER
        added[~is_left] = NEVER
        added[:, ~is_left] = NEVER
    numbers = np.cumsum(is_left) - 1
    return shapes[is_left], numbers[merged]


def _added(shapes, counts, number):
    """Return how many positions it adds to merge a rectangle with each of the others."""
    union = np.maximum(shapes[number], shapes).sum(axis=-1)
    sizes = shapes.sum(axis=-1)
    return counts[number] * (union - sizes[number]) + counts * (union - sizes)
