"""Sequences cut into blocks, for attentions whose cost grows with their length and not with its
square (Vaswani et al. 2017, section 4 and table 1).
"""

from keras import ops

from keras_transformer.layers.tensors import Tensor


def width_of_blocks(most: int, length: int | Tensor) -> int | Tensor:
    """Positions of a block: at most `most`, and no more than a sequence has."""
    if isinstance(length, int):
        return max(1, min(most, length))
    return ops.maximum(1, ops.minimum(most, length))


def count_of_blocks(length: int | Tensor, width: int | Tensor) -> int | Tensor:
    """How many blocks of a width hold a sequence."""
    return (length + width - 1) // width


def into_blocks(x: Tensor, width: int | Tensor) -> Tensor:
    """Cut sequences into blocks, each of them a row of the batch; the last one is filled with 0.

    Args:
        x: (B, h, T, d).
        width: positions of a block.

    Returns:
        (B n, h, width, d), n blocks of a sentence side by side.
    """
    return neighbours(x, width, 0, 0)


def neighbours(x: Tensor, width: int | Tensor, before: int, behind: int) -> Tensor:
    """The blocks of sequences, each with those beside it. Where there is none, it is 0.

    Args:
        x: (B, h, T, d), numbers or booleans.
        width: positions of a block.
        before, behind: how many blocks come before it and behind it.

    Returns:
        (B n, h, (before + 1 + behind) width, d).
    """
    batch, heads, length, depth = ops.shape(x)
    count = count_of_blocks(length, width)

    def nothing(positions):
        return ops.zeros((batch, heads, positions, depth), dtype=x.dtype)

    padded = ops.concatenate(
        [nothing(before * width), x, nothing((count + behind) * width - length)], axis=2
    )
    blocks = ops.reshape(padded, (batch, heads, before + count + behind, width, depth))
    beside = [blocks[:, :, start : start + count] for start in range(before + 1 + behind)]
    wide = ops.concatenate(beside, axis=3) if len(beside) > 1 else beside[0]
    rows = ops.transpose(wide, (0, 2, 1, 3, 4))
    return ops.reshape(rows, (batch * count, heads, len(beside) * width, depth))


def from_blocks(blocks: Tensor, batch: int | Tensor, length: int | Tensor) -> Tensor:
    """The sequences that `into_blocks` cut.

    Args:
        blocks: (B n, h, width, d).
        batch: B, which may be 0.
        length: T.

    Returns:
        (B, h, T, d).
    """
    _, heads, width, depth = ops.shape(blocks)
    count = count_of_blocks(length, width)
    apart = ops.reshape(blocks, (batch, count, heads, width, depth))
    whole = ops.transpose(apart, (0, 2, 1, 3, 4))
    return ops.reshape(whole, (batch, heads, count * width, depth))[:, :, :length]
