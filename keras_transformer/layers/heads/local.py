"""Self-attention "restricted to considering only a neighborhood of size r" (Vaswani et al. 2017,
section 4, and table 1).
"""

import keras
from keras import ops

from keras_transformer.layers.heads.blocks import (
    from_blocks,
    into_blocks,
    neighbours,
    width_of_blocks,
)
from keras_transformer.layers.heads.relative_positions import distances
from keras_transformer.layers.heads.softmax import (
    SoftmaxHeads,
    SoftmaxStepper,
    joined,
    mask_of_keys,
)
from keras_transformer.layers.tensors import KeysAndValues, Tensor


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

    Call arguments: as in `AttentionHeads`, with S = T and an `attention_mask` of (B, 1, S).
    """

    def __init__(self, radius: int, **kwargs):
        super().__init__(**kwargs)
        self.radius = radius

    def pattern(self, query: Tensor, key: Tensor) -> Tensor:
        return self._near(ops.shape(query)[-2], ops.shape(key)[-2])

    def _near(self, num_queries, num_keys, following=0):
        return (ops.abs(distances(num_queries, num_keys, following)) <= self.radius)[None]

    def call(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> Tensor:
        batch, _, length, _ = ops.shape(query)
        width = width_of_blocks(self.radius, length)
        # Blocks before and after that of the queries.
        beside = (1, 0 if causal is not None else 1)
        following = beside[1] * width
        queries = into_blocks(self.positions.placed(query), width)
        keys, values = (neighbours(x, width, *beside) for x in (self.positions.placed(key), value))
        near = self._near(width, sum(beside) * width + width, following)
        if causal is not None:
            near = near & (distances(width, 2 * width) <= 0)[None]
        mask = joined(near, self._may_be_seen(query, attention_mask, width, beside))
        blocks, _ = self.attend(queries, keys, values, mask, following)
        return from_blocks(blocks, batch, length)

    def _may_be_seen(self, query, attention_mask, width, beside):
        """Which of the keys beside each block are keys and no padding, (B n, 1, keys)."""
        seen = mask_of_keys(attention_mask)
        shape = (ops.shape(query)[0], 1, ops.shape(query)[2])
        seen = ops.ones(shape, "bool") if seen is None else ops.broadcast_to(seen, shape)
        return neighbours(seen[..., None], width, *beside)[..., 0]

    def stepper(self) -> "WindowStepper":
        """Self-attention over the newest R + 1 positions."""
        return WindowStepper(self)

    def get_config(self):
        return {**super().get_config(), "radius": self.radius}


class WindowStepper(SoftmaxStepper):
    """Attention of each row's newest position to itself and at most R positions before it.

    The state is their keys and values, as in `SoftmaxStepper`; it stops growing at R + 1. The keys
    are placed anew at every step, because only distances count.

    Arguments and call arguments as in `SoftmaxStepper`.
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
