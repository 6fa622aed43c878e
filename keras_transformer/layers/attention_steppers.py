"""Multi-head attention (Vaswani et al. 2017, section 3.2.2) for one new position at a time.

The arithmetic is that of `MultiHeadAttention.call`. The matrices are laid out once, when a stepper
is made.
"""

from keras import ops

from keras_transformer.layers.matrix import Matrix
from keras_transformer.layers.tensors import KeysAndValues, State, Tensor


class SelfAttentionStepper:
    """Self-attention of each row's newest position to itself and all positions before it.

    The state is that of its heads' stepper: by default a cache of keys and values, (rows, h, t,
    d_k) and (rows, h, t, d_v), which grows by one along axis 2 at every step.

    Args:
        attention: a built `MultiHeadAttention`.

    Call arguments:
        x: the newest position, (rows, d_model).
        state: what `start` or the step before returned.

    Returns:
        (rows, d_model), and the state with the new position in it.
    """

    def __init__(self, attention):
        policy = attention.dtype_policy
        self._num_heads = attention.num_heads
        self._width = attention.num_heads * attention.d_v
        self._projections = Matrix(
            [attention.query_kernel, attention.key_kernel, attention.value_kernel],
            policy,
            [attention.query_bias, attention.key_bias, attention.value_bias],
        )
        self._heads = attention.heads.stepper()
        self._output = Matrix([attention.output_kernel], policy, [attention.output_bias])
        self.growing = self._heads.growing

    def start(self, rows: int | Tensor) -> State:
        """The state before the first position."""
        return self._heads.start(rows)

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        query, key, value = (
            ops.reshape(part, (-1, self._num_heads, 1, part.shape[-1] // self._num_heads))
            for part in self._projections(x)
        )
        heads, state = self._heads(query, key, value, state)
        [output] = self._output(ops.reshape(heads, (-1, self._width)))
        return output, state


class MemoryStepper:
    """Attention to a memory whose keys and values were projected once a sentence.

    The K hypotheses of a sentence attend to one copy of its memory, as K queries.

    Args:
        attention: a built `MultiHeadAttention`.

    Call arguments:
        x: the newest position of B K hypotheses, (B K, d_model).
        memory: from `MultiHeadAttention.keys_and_values`, tensors of B rows.
        memory_mask: booleans, (B, 1, S).

    Returns:
        (B K, d_model), and the attention weights (B, h, K, S).
    """

    def __init__(self, attention):
        self._sizes = (attention.num_heads, attention.d_k)
        self._width = attention.num_heads * attention.d_v
        policy = attention.dtype_policy
        self._query = Matrix([attention.query_kernel], policy, [attention.query_bias])
        self._look = attention.heads.look
        self._output = Matrix([attention.output_kernel], policy, [attention.output_bias])

    def __call__(
        self, x: Tensor, memory: KeysAndValues, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        [query] = self._query(x)
        query = ops.reshape(query, (ops.shape(memory[0])[0], -1, *self._sizes))
        heads, weights = self._look(ops.transpose(query, (0, 2, 1, 3)), memory, memory_mask)
        [output] = self._output(ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (-1, self._width)))
        return output, weights
