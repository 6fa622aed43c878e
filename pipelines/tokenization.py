"""Lines to packed ids, many lines in a call of the tokenizer."""

from collections.abc import Iterable, Iterator, Sequence

import tensorflow as tf

from pipelines.token_ids import TokenIds, smallest_dtype

LINES_A_CALL = 8192


def slices(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """Parts of a text, in order, each as large as one call of a tokenizer takes it."""
    for start in range(0, len(lines), LINES_A_CALL):
        yield lines[start : start + LINES_A_CALL]


def packed(parts: Iterable[tf.RaggedTensor], size: int) -> TokenIds:
    """The rows of all parts, in order.

    Args:
        parts: at least one, of integers.
        size: each integer is below it.
    """
    dtype = smallest_dtype(size)
    return TokenIds.concatenate(
        TokenIds.of_lengths(part.values.numpy().astype(dtype), part.row_lengths().numpy())
        for part in parts
    )
