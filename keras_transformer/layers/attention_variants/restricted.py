"""Self-attention to some of the keys: "restricted to considering only a neighborhood of size r"
(Vaswani et al. 2017, section 4 and table 1), or to that and every r-th; and the blocks in which
sequences are computed at a cost that grows with their length and not with its square.
"""

import keras
from keras import ops

from keras_transformer.layers.attention_variants.relative_positions import distances
from keras_transformer.layers.scaled_dot_product import SoftmaxHeads, SoftmaxStepper
from keras_transformer.layers.tensors import ALL, KeysAndValues, Masks, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class LocalHeads(SoftmaxHeads):
    """Each query attends to the keys at a distance of at most R; with `causal`, to those before
    it and itself. It replaces self-attention, in the encoder and in the decoder.

    Whole sequences are computed in blocks of R: each block of queries with its own keys and those
    of the blocks beside it. Time and memory grow with R n, where the full attention's grow with
    n^2. Only `with_weights` computes all n^2 scores, and masks them.

    Args:
        radius: R, at least 1, in tokens.
        similarity, positions, dropout: as in `SoftmaxHeads`.

    Call arguments: as in `AttentionHeads`, with S = T and an attention mask of (B, 1, S).
    """

    arguments = ("radius",)

    def __init__(self, radius: int, **kwargs):
        super().__init__(**kwargs)
        self.radius = radius

    def pattern(self, query: Tensor, key: Tensor) -> Tensor:
        return self._near(ops.shape(query)[-2], ops.shape(key)[-2])

    def _near(self, num_queries, num_keys, following=0):
        return (ops.abs(distances(num_queries, num_keys, following)) <= self.radius)[None]

    def call(self, query: Tensor, key: Tensor, value: Tensor, masks: Masks = ALL) -> Tensor:
        batch, _, length, _ = ops.shape(query)
        width = width_of_blocks(self.radius, length)
        # Blocks before and after that of the queries.
        beside = (1, 0 if masks.causal is not None else 1)
        following = beside[1] * width
        queries = into_blocks(self.positions.placed(query), width)
        keys, values = (neighbours(x, width, *beside) for x in (self.positions.placed(key), value))
        near = self._near(width, sum(beside) * width + width, following)
        if masks.causal is not None:
            near = near & (distances(width, 2 * width) <= 0)[None]
        mask = Masks(near).joined(self._may_be_seen(query, masks.of_keys(), width, beside))
        blocks, _ = self.attend(queries, keys, values, mask, following)
        return from_blocks(blocks, batch, length)

    def _may_be_seen(self, query, seen, width, beside):
        """Which of the keys beside each block are keys and no padding, (B n, 1, keys)."""
        shape = (ops.shape(query)[0], 1, ops.shape(query)[2])
        seen = ops.ones(shape, "bool") if seen is None else ops.broadcast_to(seen, shape)
        return neighbours(seen[..., None], width, *beside)[..., 0]

    def stepper(self) -> "WindowStepper":
        """Self-attention over the newest R + 1 positions."""
        return WindowStepper(self)


class WindowStepper(SoftmaxStepper):
    """A `SoftmaxStepper` of at most R positions before the newest one.

    The state stops growing at R + 1. The keys are placed anew at every step, because only
    distances count.
    """

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, state: KeysAndValues
    ) -> tuple[Tensor, KeysAndValues]:
        placed = self._heads.positions.placed
        keys, values = (
            ops.concatenate([before[:, :, -self._heads.radius :], newest], axis=2)
            for before, newest in zip(state, (key, value), strict=True)
        )
        query = placed(query, after=keys[:, :, :-1])
        heads, _ = self._heads.attend(query, placed(keys), values)
        return heads, (keys, values)


@keras.saving.register_keras_serializable("keras_transformer")
class SparseHeads(SoftmaxHeads):
    """Strided sparse attention: a query at t attends to the keys at s where

        |t - s| <= R   or   (t - s) mod R = 0.

    With `causal` these are the sets A^(1) and A^(2) of the authors' strided pattern, s <= t, joined
    in each head. It replaces self-attention, in the encoder and in the decoder. The other scores
    are masked, so it takes as long as the full attention.

    Args:
        stride: R, at least 1, in tokens.
        similarity, positions, dropout: as in `SoftmaxHeads`.

    Reference: Child et al. 2019, "Generating Long Sequences with Sparse Transformers", sections 4.3
        and 5.2.
    """

    arguments = ("stride",)

    def __init__(self, stride: int, **kwargs):
        super().__init__(**kwargs)
        self.stride = stride

    def pattern(self, query: Tensor, key: Tensor) -> Tensor:
        distance = ops.abs(distances(ops.shape(query)[-2], ops.shape(key)[-2]))
        return ((distance <= self.stride) | (distance % self.stride == 0))[None]


def width_of_blocks(most: int, length: int | Tensor) -> int | Tensor:
    """Positions of a block: at most `most`, and no more than a sequence has."""
    if isinstance(length, int):
        return max(1, min(most, length))
    return ops.maximum(1, ops.minimum(most, length))


def count_of_blocks(length: int | Tensor, width: int | Tensor) -> int | Tensor:
    """How many blocks of a width hold a sequence."""
    return (length + width - 1) // width


def into_blocks(x: Tensor, width: int | Tensor) -> Tensor:
    """Cut sequences (B, h, T, d) into n blocks each, (B n, h, width, d), the last filled with 0."""
    return neighbours(x, width, 0, 0)


def neighbours(x: Tensor, width: int | Tensor, before: int, behind: int) -> Tensor:
    """The blocks of sequences, each with those beside it; 0 where there is none.

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
    """The sequences (B, h, T, d) that `into_blocks` cut, (B n, h, width, d); B may be 0."""
    _, heads, width, depth = ops.shape(blocks)
    count = count_of_blocks(length, width)
    apart = ops.reshape(blocks, (batch, count, heads, width, depth))
    whole = ops.transpose(apart, (0, 2, 1, 3, 4))
    return ops.reshape(whole, (batch, heads, count * width, depth))[:, :, :length]
