"""Self-attention to some of the keys: "restricted to considering only a neighborhood of size r"
(Vaswani et al. 2017, section 4 and table 1), or to that and every r-th key. Sequences are cut into
blocks, so that the cost does not grow with the square of their length.
"""

import functools

import keras
from keras import ops

from keras_transformer.layers.prototypes import check_sizes
from keras_transformer.layers.scaled_dot_product import SoftmaxHeads, SoftmaxStepper, attention_by
from keras_transformer.layers.tensors import ALL, KeysAndValues, Masks, Tensor, distances


@keras.saving.register_keras_serializable("keras_transformer")
class LocalHeads(SoftmaxHeads):
    """Each query attends to the keys at a distance of at most R; with `causal`, only to itself and
    the R keys before it. It replaces self-attention, in the encoder and in the decoder.

    Whole sequences are computed in blocks of R: each block of queries attends to its own keys and
    those of the neighbouring blocks. Time and memory grow with R n instead of n^2. Only
    `with_weights` computes all n^2 scores, and masks them.

    Args:
        radius: R, at least 1, in tokens.
        similarity, positions, dropout: as in `SoftmaxHeads`.

    Call arguments: as in `AttentionHeads`, with S = T and an attention mask of (B, 1, S).
    """

    def __init__(self, radius: int, **kwargs):
        super().__init__(**kwargs)
        check_sizes(radius=radius)
        self.radius = radius

    def pattern(self, query: Tensor, key: Tensor) -> Tensor:
        return _near(self.radius, ops.shape(query)[-2], ops.shape(key)[-2])

    def call(self, query: Tensor, key: Tensor, value: Tensor, masks: Masks = ALL) -> Tensor:
        query, key = (self.positions.placed(x) for x in (query, key))
        blocks, _ = self.attend(*_near_blocks(self.radius, query, key, value, masks))
        return from_blocks(blocks, ops.shape(query)[0], ops.shape(query)[2])

    def stepper(self) -> "WindowStepper":
        return WindowStepper(self)


class WindowStepper(SoftmaxStepper):
    """A `SoftmaxStepper` of at most R positions before the newest one.

    The state stops growing at R + 1. Its keys have no positions: each step places them anew,
    because only distances count.
    """

    def __call__(
        self, query_key: Tensor, value: Tensor, state: KeysAndValues
    ) -> tuple[Tensor, KeysAndValues]:
        placed = self._heads.positions.placed
        query, key = ops.split(query_key, 2, axis=1)
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

    With `causal`, also s <= t: the union, in each head, of the sets A^(1) and A^(2) of the authors'
    strided pattern. It replaces self-attention, in the encoder and in the decoder.

    Whole sequences are computed in blocks of R, as by `LocalHeads`, and in R columns of every R-th
    position, each of which attends to itself. One softmax is taken over both. Time and memory grow
    with n (R + n / R): with n^1.5 where R is the root of n, as the authors advise. Only
    `with_weights` computes all n^2 scores, and masks them.

    Args:
        stride: R, at least 1, in tokens.
        similarity, positions, dropout: as in `SoftmaxHeads`.

    Call arguments: as in `LocalHeads`.

    Reference: Child et al. 2019, "Generating Long Sequences with Sparse Transformers", sections 4.3
        and 5.2.
    """

    def __init__(self, stride: int, **kwargs):
        super().__init__(**kwargs)
        check_sizes(stride=stride)
        self.stride = stride

    def pattern(self, query: Tensor, key: Tensor) -> Tensor:
        distance = ops.abs(distances(ops.shape(query)[-2], ops.shape(key)[-2]))
        return ((distance <= self.stride) | (distance % self.stride == 0))[None]

    def call(self, query: Tensor, key: Tensor, value: Tensor, masks: Masks = ALL) -> Tensor:
        query, key = (self.positions.placed(x) for x in (query, key))
        batch, _, length, _ = ops.shape(query)
        width = width_of_blocks(self.stride, length)
        count = count_of_blocks(length, width)
        queries, keys, values, near, between = _near_blocks(self.stride, query, key, value, masks)
        # (B R, h, n, d): each column has one position of each of the n blocks.
        of_columns = (
            _transposed(into_blocks(x, width), batch, count)
            for x in (query, key, value, _is_token(masks, batch, length))
        )
        query_columns, key_columns, value_columns, is_token = of_columns
        # Neighbours in a column are in `near` already.
        far = distances(count, count)
        far = (far if masks.causal is not None else -ops.abs(far)) < -1
        far = _transposed(far & is_token[..., 0][:, :, None], batch, width)

        within_column = functools.partial(distances, apart=width)

        def product(weights, values):
            keys_near = ops.shape(near)[-1]
            of_far = _transposed(weights[..., keys_near:], batch, count)
            heads = _transposed(self._values(of_far, value_columns, within_column), batch, width)
            return heads + self._values(weights[..., :keys_near], values, between)

        scores = _transposed(self._scores(query_columns, key_columns, within_column), batch, width)
        blocks, _ = attention_by(
            ops.concatenate([self._scores(queries, keys, between), scores], axis=-1),
            values,
            ops.concatenate([near, far], axis=-1),
            dropout=self.weights_dropout,
            product=product,
        )
        return from_blocks(blocks, batch, length)

    def _scores(self, query, key, between):
        scores = self.similarity.scores(query, key)
        bias = self.positions.score_bias(query, key, between)
        return scores if bias is None else scores + bias

    def _values(self, weights, value, between):
        heads = ops.matmul(weights, value)
        relative = self.positions.of_weights(weights, between)
        return heads if relative is None else heads + relative


def _near(radius, num_queries, num_keys, between=distances):
    return (ops.abs(between(num_queries, num_keys)) <= radius)[None]


def _near_blocks(radius, query, key, value, masks):
    """Return the arguments of `SoftmaxHeads.attend` by which each block attends to the keys at a
    distance of at most `radius`: queries, keys, values, a mask (B n, 1, width, keys), `between`.
    """
    key, value = of_one_length(query, key, value)
    batch, _, length, _ = ops.shape(query)
    width = width_of_blocks(radius, length)
    # How many blocks before and after a query's own it attends to.
    beside = (1, 0 if masks.causal is not None else 1)
    between = functools.partial(distances, following=beside[1] * width)
    near = _near(radius, width, sum(beside) * width + width, between)
    if masks.causal is not None:
        near = near & (distances(width, 2 * width) <= 0)[None]
    keys, values, is_token = (
        neighbours(x, width, *beside) for x in (key, value, _is_token(masks, batch, length))
    )
    mask = near & ops.swapaxes(is_token, -1, -2)
    return into_blocks(query, width), keys, values, mask, between


def of_one_length(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Return the keys and values of a self-attention; refuse those unlike the queries in length."""
    lengths = [x.shape[2] for x in (query, key) if x.shape[2] is not None]
    if lengths[:1] != lengths[-1:]:
        raise ValueError(
            "`query` and `key` must be of one length, because these heads are for self-attention. "
            f"Received: {lengths[0]} and {lengths[1]}. Give attention to a memory SoftmaxHeads()."
        )
    # A reshape costs nothing, and fails when the graph runs if lengths unknown now differ.
    sizes = ops.shape(query)[:3]
    return tuple(ops.reshape(x, (*sizes, x.shape[-1])) for x in (key, value))


def _is_token(masks, batch, length):
    """Return which keys are tokens, not padding: booleans (B, 1, T, 1)."""
    mask = masks.of_keys()
    shape = (batch, 1, length)
    mask = ops.ones(shape, "bool") if mask is None else ops.broadcast_to(mask, shape)
    return mask[..., None]


def _transposed(blocks, batch, count):
    """Turn n blocks of each sequence, (B n, h, width, d), into columns, (B width, h, n, d)."""
    _, heads, width, depth = ops.shape(blocks)
    x = ops.reshape(blocks, (batch, count, heads, width, depth))
    return ops.reshape(ops.transpose(x, (0, 3, 2, 1, 4)), (batch * width, heads, count, depth))


def width_of_blocks(most: int, length: int | Tensor) -> int | Tensor:
    """Return the positions of a block: at most `most`, and no more than a sequence has."""
    if isinstance(length, int):
        return max(1, min(most, length))
    return ops.maximum(1, ops.minimum(most, length))


def count_of_blocks(length: int | Tensor, width: int | Tensor) -> int | Tensor:
    """Return how many blocks of a width hold a sequence."""
    return (length + width - 1) // width


def into_blocks(x: Tensor, width: int | Tensor) -> Tensor:
    """Cut sequences (B, h, T, d) into n blocks each, (B n, h, width, d), the last filled with 0."""
    return neighbours(x, width, 0, 0)


def neighbours(x: Tensor, width: int | Tensor, before: int, behind: int) -> Tensor:
    """Cut sequences (B, h, T, d) into blocks, each joined with the `before` and the `behind` blocks
    next to it, filled with 0 beyond the ends: (B n, h, (before + 1 + behind) width, d).
    """
    batch, heads, length, depth = ops.shape(x)
    count = count_of_blocks(length, width)

    def zeros(positions):
        return ops.zeros((batch, heads, positions, depth), dtype=x.dtype)

    padded = ops.concatenate(
        [zeros(before * width), x, zeros((count + behind) * width - length)], axis=2
    )
    blocks = ops.reshape(padded, (batch, heads, before + count + behind, width, depth))
    shifted = [blocks[:, :, start : start + count] for start in range(before + 1 + behind)]
    wide = ops.concatenate(shifted, axis=3) if len(shifted) > 1 else shifted[0]
    rows = ops.transpose(wide, (0, 2, 1, 3, 4))
    return ops.reshape(rows, (batch * count, heads, len(shifted) * width, depth))


def from_blocks(blocks: Tensor, batch: int | Tensor, length: int | Tensor) -> Tensor:
    """Join what `into_blocks` cut, (B n, h, width, d), to sequences (B, h, T, d); B may be 0."""
    _, heads, width, depth = ops.shape(blocks)
    count = count_of_blocks(length, width)
    x = ops.reshape(blocks, (batch, count, heads, width, depth))
    x = ops.transpose(x, (0, 2, 1, 3, 4))
    return ops.reshape(x, (batch, heads, count * width, depth))[:, :, :length]
