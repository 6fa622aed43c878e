"""Multi-head attention (Vaswani et al. 2017, section 3.2.2) for one new position at a time.

The arithmetic is that of `MultiHeadAttention.call`. The matrices are laid out once, when a stepper
is made.
"""

from keras import ops

from keras_transformer.layers.matrix import Matrix
from keras_transformer.layers.scaled_dot_product import (
    attention_weights,
    scaled_dot_product_attention,
)
from keras_transformer.layers.tensors import Tensor

KeysAndValues = tuple[Tensor, Tensor]


class SelfAttentionStepper:
    """Self-attention of each row's newest position to itself and all positions before it.

    The state is the cache of keys and values, (rows, h, t, d_k) and (rows, h, t, d_v). It grows by
    one along axis 2 at every step.

    Args:
        attention: a built `MultiHeadAttention`.

    Call arguments:
        x: the newest position, (rows, d_model).
        state: what `start` or the step before returned.

    Returns:
        (rows, d_model), and the state with the new position appended.
    """

    growing = (2, 2)

    def __init__(self, attention):
        policy = attention.dtype_policy
        self._num_heads = attention.num_heads
        self._widths = (attention.d_k, attention.d_v)
        self._dtype = attention.compute_dtype
        self._projections = Matrix(
            [attention.query_kernel, attention.key_kernel, attention.value_kernel], policy
        )
        self._output = Matrix([attention.output_kernel], policy)

    def start(self, rows: int | Tensor) -> KeysAndValues:
        """The empty cache before the first position."""
        keys, values = (
            ops.zeros((rows, self._num_heads, 0, width), dtype=self._dtype)
            for width in self._widths
        )
        return keys, values

    def __call__(self, x: Tensor, state: KeysAndValues) -> tuple[Tensor, KeysAndValues]:
        query, *newest = (
            ops.reshape(part, (-1, self._num_heads, 1, part.shape[-1] // self._num_heads))
            for part in self._projections(x)
        )
        keys, values = (
            ops.concatenate([before, new], axis=2)
            for before, new in zip(state, newest, strict=True)
        )
        heads = scaled_dot_product_attention(query, keys, values)
        [output] = self._output(ops.reshape(heads, (-1, self._num_heads * self._widths[1])))
        return output, (keys, values)


class MemoryStepper:
    """Attention to a memory whose keys and values were projected once a sentence.

    The K hypotheses of a sentence attend to one copy of its memory, as K queries.

    Args:
        attention: a built `MultiHeadAttention`.

    Call arguments:
        x: the newest position of B K hypotheses, (B K, d_model).
        memory: from `MultiHeadAttention.keys_and_values`: (B, h, S, d_k) and (B, h, S, d_v).
        memory_mask: booleans, (B, 1, S).

    Returns:
        (B K, d_model), and the attention weights (B, h, K, S).
    """

    def __init__(self, attention):
        self._heads = (attention.num_heads, attention.d_k)
        self._width = attention.num_heads * attention.d_v
        self._query = Matrix([attention.query_kernel], attention.dtype_policy)
        self._output = Matrix([attention.output_kernel], attention.dtype_policy)

    def __call__(
        self, x: Tensor, memory: KeysAndValues, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        keys, values = memory
        [query] = self._query(x)
        query = ops.reshape(query, (ops.shape(keys)[0], -1, *self._heads))
        mask = None if memory_mask is None else ops.expand_dims(memory_mask, -3)
        weights = attention_weights(ops.transpose(query, (0, 2, 1, 3)), keys, mask)
        heads = ops.transpose(ops.matmul(weights, values), (0, 2, 1, 3))
        [output] = self._output(ops.reshape(heads, (-1, self._width)))
        return output, weights
