"""The decoder of section 3.1 (Vaswani et al. 2017), one token further: what decoding by section 6.1
calls for every token.

The same arithmetic as `Decoder.call`, from matrices that are laid out anew once, before the first
token.
"""

from keras import ops

from keras_transformer.layers.attention import attention_weights, scaled_dot_product_attention

# Rows that lie a multiple of 2 KB apart fall on few lines of a processor's cache: multiplying by
# 512 x 2048 numbers took almost twice as long as by 512 x 2064 (benchmarks/README.md).
UNFAVOURABLE = 512
EXTRA = 16


class DecoderStepper:
    """One new position for each of K hypotheses a sentence.

    Args:
        decoder: a built `Decoder`.

    Call arguments:
        x: embedded new tokens, (B, K, d_model).
        past: from `Decoder.empty_past` or the step before: for every layer (keys, values), (B K, h,
            t, d_k) and (B K, h, t, d_v).
        memory: from `Decoder.memory_cache`: likewise (B, h, S, d_k) and (B, h, S, d_v). The K
            hypotheses attend to one copy as K queries.
        memory_mask: booleans, (B, 1, S).

    Returns:
        (B, K, d_model), and the past with the new tokens appended at t.
    """

    def __init__(self, decoder):
        self._layers = [_LayerStepper(layer) for layer in decoder.layers]

    def __call__(self, x, past, memory, memory_mask=None):
        x, past, _ = self.attentive(x, past, memory, memory_mask)
        return x, past

    def attentive(self, x, past, memory, memory_mask=None):
        """The step and how much each hypothesis attends to the memory: the mean of the last layer's
        heads, float32 (B, K, S), third.
        """
        new_past = []
        for layer, layer_past, layer_memory in zip(self._layers, past, memory, strict=True):
            x, layer_past, weights = layer(x, layer_past, layer_memory, memory_mask)
            new_past.append(layer_past)
        return x, new_past, ops.mean(ops.cast(weights, "float32"), axis=1)


class _LayerStepper:
    """A `DecoderStepper`'s share of one `DecoderLayer`."""

    def __init__(self, layer):
        self._layer = layer
        self._attention = back = layer.self_attention
        across = layer.cross_attention
        feed_forward = layer.feed_forward
        policy = layer.dtype_policy
        self._projections = Matrix([back.query_kernel, back.key_kernel, back.value_kernel], policy)
        self._output, self._query, self._across_output = (
            Matrix([kernel], policy)
            for kernel in (back.output_kernel, across.query_kernel, across.output_kernel)
        )
        self._inner = Matrix([feed_forward.inner.kernel], policy)
        self._outer = Matrix([feed_forward.outer.kernel], policy)

    def __call__(self, x, past, memory, memory_mask):
        attention = self._attention
        shape = ops.shape(x)
        heads = attention.num_heads
        d_model = x.shape[-1]
        rows = ops.reshape(x, (-1, d_model))
        query, *token = (
            ops.reshape(part, (-1, heads, 1, part.shape[-1] // heads))
            for part in self._projections(rows)
        )
        past = tuple(
            ops.concatenate([before, new], axis=2) for before, new in zip(past, token, strict=True)
        )
        attended = scaled_dot_product_attention(query, *past)
        [output] = self._output(ops.reshape(attended, (-1, heads * attention.d_v)))
        rows = self._layer.self_attention_norm(rows, output)

        [query] = self._query(rows)
        query = ops.transpose(
            ops.reshape(query, (shape[0], shape[1], heads, attention.d_k)), (0, 2, 1, 3)
        )
        weights = attention_weights(
            query, memory[0], None if memory_mask is None else ops.expand_dims(memory_mask, -3)
        )
        attended = ops.transpose(ops.matmul(weights, memory[1]), (0, 2, 1, 3))
        [output] = self._across_output(ops.reshape(attended, (-1, heads * attention.d_v)))
        rows = self._layer.cross_attention_norm(rows, output)

        feed_forward = self._layer.feed_forward
        [inner] = self._inner(rows)
        inner = feed_forward.inner.activation(
            inner + ops.cast(feed_forward.inner.bias, inner.dtype)
        )
        [outer] = self._outer(inner)
        rows = self._layer.feed_forward_norm(
            rows, outer + ops.cast(feed_forward.outer.bias, outer.dtype)
        )
        return ops.reshape(rows, shape), past, weights


class Matrix:
    """Several matrices to multiply one thing by, side by side in one that is fast to multiply by.

    Args:
        kernels: (d, n) each.
        policy: a Keras dtype policy. In bfloat16 is multiplied where it computes in it or keeps its
            variables in it.

    Call arguments:
        x: (rows, d).

    Returns:
        The products, (rows, n) each, in the dtype that the policy computes in.
    """

    def __init__(self, kernels, policy):
        self._dtype = policy.compute_dtype
        dtype = (
            policy.variable_dtype if policy.variable_dtype == "bfloat16" else policy.compute_dtype
        )
        kernels = [ops.cast(kernel, dtype) for kernel in kernels]
        self._widths = [kernel.shape[-1] for kernel in kernels]
        width = sum(self._widths)
        if width % UNFAVOURABLE == 0:
            kernels.append(ops.zeros((kernels[0].shape[0], EXTRA), dtype=dtype))
        self._kernel = ops.concatenate(kernels, axis=-1) if len(kernels) > 1 else kernels[0]

    def __call__(self, x):
        product = ops.cast(ops.matmul(ops.cast(x, self._kernel.dtype), self._kernel), self._dtype)
        parts = []
        start = 0
        for width in self._widths:
            parts.append(product[:, start : start + width])
            start += width
        return parts
