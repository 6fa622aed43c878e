"""Linear maps, such as those of section 3.3, eq. 2 (Vaswani et al. 2017): for training with biases
that bfloat16 can train, and for decoding, which multiplies few rows by each matrix per token.

The gradient of a bias is a sum over all positions. On a CPU, TensorFlow's operation that adds a
bias takes it in the gradient's dtype, and so does JAX for any addition. In bfloat16, which has 8
bits of precision, such a sum stops growing at 256 times its terms. For a plain addition TensorFlow
sums the gradient in float32.
"""

from collections.abc import Iterator, Sequence

import keras
from keras import ops

from keras_transformer.layers.tensors import Tensor

# Rows that lie a multiple of 2 KB apart fall on few lines of a processor's cache: multiplying by
# 512 x 2048 numbers took almost twice as long as by 512 x 2064 (benchmarks/LOG.md).
UNFAVOURABLE = 512
EXTRA = 16


class Kernel:
    """The matrix of a linear map, as a read-only attribute of its layer: the weight W, which has
    the same name with a leading "_", or W + scale A B once `adapt` or the method `enable_lora` of
    Keras' `Dense` has added an adapter.
    """

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, layer, owner=None):
        if layer is None:
            return self
        kernel = getattr(layer, f"_{self._name}")
        low_rank = vars(layer).get("_low_rank", {}).get(self._name)
        if getattr(layer, "lora_enabled", False):
            scale = layer.lora_alpha / layer.lora_rank
            low_rank = (layer.lora_kernel_a, layer.lora_kernel_b, scale)
        if low_rank is None:
            return kernel
        a, b, scale = low_rank
        return kernel + scale * ops.matmul(a, b)

    def adapt(
        self, layer: keras.layers.Layer, rank: int, scale: float, ends: Sequence[str]
    ) -> None:
        """Add an adapter to this matrix of a built layer, (d, n): A (d, r), B (r, n) and the scale,
        alpha / r (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section
        4.1). Its three weights have the matrix's name and these `ends`. x A starts with the
        variance of x; B is 0, so nothing changes at first.
        """
        kernel = getattr(layer, f"_{self._name}")
        rows, columns = kernel.shape
        normal = keras.initializers.RandomNormal(stddev=rows**-0.5)
        constant = keras.initializers.Constant(scale)
        a, b, factor = (f"{kernel.name}{end}" for end in ends)
        # A built layer accepts no weights until it is unlocked, as in Keras' own `enable_lora`.
        layer._tracker.unlock()
        low_rank = (
            layer.add_weight(name=a, shape=(rows, rank), initializer=normal),
            layer.add_weight(name=b, shape=(rank, columns), initializer="zeros"),
            layer.add_weight(name=factor, shape=(), initializer=constant, trainable=False),
        )
        layer._tracker.lock()
        vars(layer).setdefault("_low_rank", {})[self._name] = low_rank


def kernels(model: keras.Model) -> Iterator[tuple[str, keras.layers.Layer, Kernel]]:
    """Yield each matrix that `Kernel.adapt` takes: its path, its layer, and the attribute."""
    for layer in model._flatten_layers():
        for kind in type(layer).__mro__:
            for name, attribute in vars(kind).items():
                if isinstance(attribute, Kernel):
                    yield getattr(layer, f"_{name}").path, layer, attribute


@keras.saving.register_keras_serializable("keras_transformer")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense`: activation(x W + b), the bias added by `plus_bias`."""

    kernel = Kernel()

    def call(self, x: Tensor) -> Tensor:
        y = ops.matmul(x, self.kernel)
        y = y if self.bias is None else plus_bias(y, self.bias)
        return y if self.activation is None else self.activation(y)


def plus_bias(y: Tensor, bias: Tensor) -> Tensor:
    """Return y + bias, (..., width). The bias's gradient is summed in float32."""
    if keras.backend.backend() != "jax":
        return y + ops.cast(bias, y.dtype)

    @ops.custom_gradient
    def added(y, bias):
        def gradient(*args, upstream=None):
            upstream = args[-1] if upstream is None else upstream
            positions = ops.reshape(ops.cast(upstream, "float32"), (-1, upstream.shape[-1]))
            return upstream, ops.cast(ops.sum(positions, axis=0), bias.dtype)

        return y + ops.cast(bias, y.dtype), gradient

    return added(y, ops.convert_to_tensor(bias))


class Matrix:
    """Kernels concatenated so that one matrix product applies them all.

    Args:
        kernels: (d, n) each.
        policy: a Keras dtype policy. The product is computed in bfloat16 if the policy computes or
            stores its variables in bfloat16.
        biases: one for each kernel, (n,) or None, added to its product. Default: no biases.
        laid_out: the attribute `laid_out` of an earlier `Matrix` of the same kernels, to reuse it.

    Attributes:
        laid_out: the concatenated kernels, (d, at least the sum of all n).

    Call arguments:
        x: (rows, d).

    Returns:
        A list of the products, (rows, n) each, in the dtype that the policy computes in.
    """

    def __init__(
        self,
        kernels: Sequence[Tensor],
        policy: keras.DTypePolicy,
        biases: Sequence[Tensor | None] = (),
        laid_out: Tensor | None = None,
    ):
        self._dtype = policy.compute_dtype
        self._biases = [bias if bias is None else ops.cast(bias, self._dtype) for bias in biases]
        dtype = "bfloat16" if policy.variable_dtype == "bfloat16" else policy.compute_dtype
        kernels = [ops.cast(kernel, dtype) for kernel in kernels]
        self._widths = [kernel.shape[-1] for kernel in kernels]
        width = sum(self._widths)
        if width % UNFAVOURABLE == 0:
            kernels.append(ops.zeros((kernels[0].shape[0], EXTRA), dtype=dtype))
        if laid_out is None:
            laid_out = ops.concatenate(kernels, axis=-1) if len(kernels) > 1 else kernels[0]
        self.laid_out = laid_out

    def __call__(self, x: Tensor) -> list[Tensor]:
        product = ops.cast(ops.matmul(ops.cast(x, self.laid_out.dtype), self.laid_out), self._dtype)
        parts = []
        start = 0
        for width in self._widths:
            is_whole = width == self.laid_out.shape[-1]
            parts.append(product if is_whole else product[:, start : start + width])
            start += width
        biases = self._biases or [None] * len(parts)
        return [
            part if bias is None else part + bias for part, bias in zip(parts, biases, strict=True)
        ]
