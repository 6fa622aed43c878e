"""Multi-head attention (Vaswani et al. 2017, section 3.2.2), of sequences and of one position."""

from typing import Any

import keras
from keras import ops

from keras_transformer.layers.linear_maps import Kernel, Matrix, plus_bias
from keras_transformer.layers.prototypes import Layer, check_sizes, like
from keras_transformer.layers.scaled_dot_product import AttentionHeads, SoftmaxHeads, SoftmaxStepper
from keras_transformer.layers.tensors import KeysAndValues, Masks, State, Tensor


@keras.saving.register_keras_serializable("keras_transformer")
class MultiHeadAttention(Layer):
    """Attention in h subspaces at once (section 3.2.2).

        MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O
        head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

    The h matrices W_i^Q, (d_model, d_k) each, are concatenated in one `query_kernel`, (d_model, h
    d_k). The same holds for K and V. `output_kernel` is W^O, (h d_v, d_model). As in the paper
    there are no biases, unless `use_bias` adds one to each product.

    `call` processes whole sequences. `stepper` and `memory_stepper` give the same outputs one
    position at a time.

    Args:
        num_heads: h.
        d_model: width of the output.
        d_k: width of a head's queries and keys; d_model / h by default.
        d_v: width of a head's values; d_model / h by default, whatever d_k is (table 3, rows B).
        output_initializer: initializer of W^O.
        heads: the function Attention, as `AttentionHeads`; the layer makes its own copy. Default:
            `SoftmaxHeads()`, the paper's scaled dot-product attention.
        use_bias: whether the four maps have biases, as in BERT and GPT-2.

    Call arguments:
        query: (B, T, d_model).
        key: (B, S, d_model).
        value: (B, S, d_model).
        attention_mask: booleans broadcastable to (B, T, S), True where the query may attend. Of a
            float mask to be added, 0 or -1e9, pass mask == 0.
        causal: `causal_mask(T)` if no query may attend to a later key, else None. It is joined with
            `attention_mask`; it is a separate argument because some heads need it alone.

    Returns:
        (B, T, d_model).

    Raises:
        ValueError: if h does not divide d_model, and d_k or d_v is not given; if the inputs have
            not one B and one S, or a mask is of floats or of another shape.

    Example:
        attention = MultiHeadAttention(num_heads=8, d_model=512)
        y = attention(x, x, x, causal=causal_mask(10))
    """

    query_kernel = Kernel()
    key_kernel = Kernel()
    value_kernel = Kernel()
    output_kernel = Kernel()

    def __init__(
        self,
        num_heads: int,
        d_model: int,
        d_k: int | None = None,
        d_v: int | None = None,
        output_initializer: str | keras.initializers.Initializer = "glorot_uniform",
        heads: AttentionHeads | dict[str, Any] | None = None,
        use_bias: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_sizes(num_heads=num_heads, d_model=d_model)
        if None in (d_k, d_v) and d_model % num_heads:
            raise ValueError(
                f"`d_model` must be divisible by `num_heads`. Received: d_model={d_model}, "
                f"num_heads={num_heads}. "
                f"Try d_model={-(-d_model // num_heads) * num_heads}, or pass `d_k` and `d_v`."
            )
        self.input_spec = keras.InputSpec(ndim=3)
        self.num_heads = num_heads
        self.d_model = d_model
        self.d_k = d_model // num_heads if d_k is None else d_k
        self.d_v = d_model // num_heads if d_v is None else d_v
        check_sizes(d_k=self.d_k, d_v=self.d_v)
        # A Keras initializer returns the same numbers at every call. A clone has a seed of its own.
        self.output_initializer = keras.initializers.get(output_initializer).clone()
        self.heads = like(heads or SoftmaxHeads(), AttentionHeads, self.dtype_policy, "heads")
        self.use_bias = use_bias

    def build(self, query_shape, key_shape, value_shape):
        def kernel(name, rows, columns, initializer="glorot_uniform"):
            return self.add_weight(name=name, shape=(rows, columns), initializer=initializer)

        self._query_kernel = kernel("query_kernel", query_shape[-1], self.num_heads * self.d_k)
        self._key_kernel = kernel("key_kernel", key_shape[-1], self.num_heads * self.d_k)
        self._value_kernel = kernel("value_kernel", value_shape[-1], self.num_heads * self.d_v)
        self._output_kernel = kernel(
            "output_kernel", self.num_heads * self.d_v, self.d_model, self.output_initializer
        )
        self.query_bias = self._bias("query_bias", self.query_kernel)
        self.key_bias = self._bias("key_bias", self.key_kernel)
        self.value_bias = self._bias("value_bias", self.value_kernel)
        self.output_bias = self._bias("output_bias", self.output_kernel)
        keys = (None, self.num_heads, None, self.d_k)
        self.heads.build(keys, keys, (None, self.num_heads, None, self.d_v))

    def _bias(self, name, kernel):
        """Make the bias of a kernel's product, zeros at first; None without biases."""
        if not self.use_bias:
            return None
        return self.add_weight(name=name, shape=(kernel.shape[-1],), initializer="zeros")

    def call(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> Tensor:
        masks = Masks(attention_mask, causal).checked(query, key, value)
        # 1. Project K W^K, V W^V and Q W^Q, and split each into h heads. Keep this order: gradients
        # are summed in it, and a resumed run must match bit for bit.
        keys, values = self.keys_and_values(key, value)
        queries = self._heads(query, self.query_kernel, self.query_bias)
        # 2. Attention(Q W_i^Q, K W_i^K, V W_i^V) of each head.
        heads = self.heads(queries, keys, values, masks=masks)
        # 3. Concat(head_1, ..., head_h) W^O.
        return self._output(heads, query)

    def with_attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None = None,
        causal: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the result of `call`, and the weights of the values, (B, h, T, S)."""
        masks = Masks(attention_mask, causal).checked(query, key, value)
        keys, values = self.keys_and_values(key, value)
        queries = self._heads(query, self.query_kernel, self.query_bias)
        heads, weights = self.heads.with_weights(queries, keys, values, masks)
        return self._output(heads, query), weights

    def keys_and_values(self, key: Tensor, value: Tensor) -> KeysAndValues:
        """Return K W^K, (B, h, S, d_k), and V W^V, (B, h, S, d_v), of (B, S, d_model) each. A
        `memory_stepper` takes those of a memory, projected once for all steps.
        """
        keys = self._heads(key, self.key_kernel, self.key_bias)
        return keys, self._heads(value, self.value_kernel, self.value_bias)

    def stepper(self) -> "SelfAttentionStepper":
        """Make self-attention of one new position to a cache, with the current weights."""
        return SelfAttentionStepper(self)

    def memory_stepper(self) -> "MemoryStepper":
        """Make attention of one new position to `keys_and_values`, with the current weights."""
        return MemoryStepper(self)

    def _output(self, heads, query):
        """(B, h, T, d_v) -> (B, T, d_model)."""
        # Take B and T from the query: in an exported graph, a broadcast hides those of the heads.
        batch, length, _ = ops.shape(query)
        concatenated = ops.reshape(
            ops.transpose(heads, (0, 2, 1, 3)), (batch, length, self.num_heads * self.d_v)
        )
        return self._project(concatenated, self.output_kernel, self.output_bias)

    def _project(self, x, kernel, bias):
        # Keras casts inside `__call__` only; `with_attention` and `keys_and_values` are called
        # from outside of it as well.
        dtype = self.compute_dtype
        product = ops.matmul(ops.cast(x, dtype), ops.cast(kernel, dtype))
        return product if bias is None else plus_bias(product, bias)

    def _heads(self, x, kernel, bias):
        """(B, T, d_model) -> (B, h, T, d)."""
        x = self._project(x, kernel, bias)
        batch, length, width = ops.shape(x)
        by_head = ops.reshape(x, (batch, length, self.num_heads, width // self.num_heads))
        return ops.transpose(by_head, (0, 2, 1, 3))

    def compute_output_shape(self, query_shape, key_shape, value_shape):
        return (*query_shape[:-1], self.d_model)


class SelfAttentionStepper:
    """Self-attention of each row's newest position, (rows, d_model), to itself and all before it.

    The state is that of its heads' stepper: by default a cache of keys and values, (rows, h, t,
    d_k) and (rows, h, t, d_v), which grows by one along axis 2 at every step.
    """

    def __init__(self, attention):
        policy = attention.dtype_policy
        self._num_heads = attention.num_heads
        self._width = attention.num_heads * attention.d_v
        kernels = [attention.query_kernel, attention.key_kernel]
        biases = [attention.query_bias, attention.key_bias]
        self._projections = Matrix(
            [ops.concatenate(kernels, axis=-1), attention.value_kernel],
            policy,
            [ops.concatenate(biases) if attention.use_bias else None, attention.value_bias],
        )
        self._of_block = attention.heads
        self._heads = attention.heads.stepper()
        self._output = Matrix([attention.output_kernel], policy, [attention.output_bias])
        self.growing = self._heads.growing

    def start(self, rows: int | Tensor) -> State:
        return self._heads.start(rows)

    def __call__(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        query_key, value = (
            ops.reshape(projected, (-1, heads, 1, projected.shape[-1] // heads))
            for projected, heads in self._projected(x)
        )
        heads, state = self._heads(query_key, value, state)
        [output] = self._output(ops.reshape(heads, (-1, self._width)))
        return output, state

    def block(self, x: Tensor, state: State, mask: Tensor) -> tuple[Tensor, State]:
        """Attend from k new positions of each row, (rows k, d_model), by a mask (rows, k, t + k).
        Between blocks, positions of the state may be cut or moved, if the newest stay at its end.
        One mask for all rows, (k, t + k), is faster, but then the state may only be cut at its end.
        """
        size = mask.shape[-2]
        by_head = (
            ops.reshape(projected, (-1, size, heads, projected.shape[-1] // heads))
            for projected, heads in self._projected(x)
        )
        query_key, value = (ops.transpose(part, (0, 2, 1, 3)) for part in by_head)
        if len(mask.shape) == 2:
            heads, state = SoftmaxStepper(self._of_block)(query_key, value, state, mask)
        else:
            query, key = ops.split(query_key, 2, axis=1)
            keys, values = map(lambda *pair: ops.concatenate(pair, axis=2), state, (key, value))
            # The cached keys have no positions yet: each block places them anew, because only
            # distances count.
            placed = self._of_block.positions.placed
            query = placed(query, after=state[0])
            mask = Masks(mask).joined(self._of_block.pattern(query, keys))
            heads, _ = self._of_block.attend(query, placed(keys), values, mask)
            state = (keys, values)
        [output] = self._output(ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (-1, self._width)))
        return output, state

    def _projected(self, x):
        """Return (queries and keys, 2 h), which positions place alike, and (values, h)."""
        return zip(self._projections(x), (2 * self._num_heads, self._num_heads), strict=True)


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
        self._attend = attention.heads.with_weights
        self._output = Matrix([attention.output_kernel], policy, [attention.output_bias])

    def __call__(
        self, x: Tensor, memory: KeysAndValues, memory_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        [query] = self._query(x)
        query = ops.reshape(query, (ops.shape(memory[0])[0], -1, *self._sizes))
        query = ops.transpose(query, (0, 2, 1, 3))
        heads, weights = self._attend(query, *memory, Masks(memory_mask))
        [output] = self._output(ops.reshape(ops.transpose(heads, (0, 2, 1, 3)), (-1, self._width)))
        return output, weights
