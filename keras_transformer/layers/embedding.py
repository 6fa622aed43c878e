"""Token embeddings and positions (Vaswani et al. 2017, sections 3.4, 3.5 and 5.4)."""

import math
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.layers.dropout import Dropout
from keras_transformer.layers.linear_maps import Matrix
from keras_transformer.layers.prototypes import Layer, Part, check_even, check_sizes, like
from keras_transformer.layers.tensors import Tensor

# Weights of the largest table that steppers copy to lay it out. NLLB-200's 262 million would take
# 2.5 s and 1 GB (benchmarks/LOG.md).
MOST_LAID_OUT = 2**27


def sinusoidal_positions(positions: Tensor, d_model: int) -> Tensor:
    """Compute the paper's sinusoids, sines in the even columns and cosines in the odd ones.

        PE(pos, 2i)     = sin(pos / 10000^(2i / d_model))
        PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

    Args:
        positions: integers of any shape (...,), each in [0, 4096) for full accuracy.
        d_model: the encoding's width, even.

    Returns:
        float32, (..., d_model), within 1e-6 of the formula in float64.
    """
    sines, cosines = sines_and_cosines(positions, np.arange(0, d_model, 2) / d_model)
    check_even("d_model", d_model, "sines and cosines come in pairs")
    shape = (*ops.shape(positions), d_model)
    return ops.reshape(ops.stack([sines, cosines], axis=-1), shape)


def sines_and_cosines(positions: Tensor, exponents: np.ndarray) -> tuple[Tensor, Tensor]:
    """Return sin(pos / 10000^e) and cos(pos / 10000^e), float32 (..., n), for exponents e (n,)."""
    # pos * rate in float32 would be off by 3e-5 at position 500. So each rate is split in two: its
    # 12 leading bits, whose product with a position below 2^12 is exact, and a small remainder. The
    # formula sin(a + e) = sin(a) cos(e) + cos(a) sin(e) joins both without loss.
    rates = np.exp(-np.log(10000.0) * exponents)
    mantissa, exponent = np.frexp(rates)
    leading = np.ldexp(np.floor(mantissa * 2**12), exponent - 12)
    positions = ops.cast(positions, "float32")[..., None]
    angle = positions * ops.convert_to_tensor(leading.astype("float32"))
    rest = positions * ops.convert_to_tensor((rates - leading).astype("float32"))
    sin_angle = ops.sin(angle)
    cos_angle = ops.cos(angle)
    sin_rest = ops.sin(rest)
    cos_rest = ops.cos(rest)
    sines = sin_angle * cos_rest + cos_angle * sin_rest
    return sines, cos_angle * cos_rest - sin_angle * sin_rest


class PositionEncoding(Part):
    """Base class of the encodings that `PositionalEmbedding` adds to the scaled embeddings."""

    def build(self, x_shape):
        """Make the weights for embeddings (B, T, d_model)."""

    def added(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the encoding to embeddings (B, T, d_model), in their dtype; `positions` are integers
        broadcastable to (B, T).
        """
        raise NotImplementedError


@keras.saving.register_keras_serializable("keras_transformer")
class SinusoidalEncoding(PositionEncoding):
    """The paper's sinusoids, of any length: see `sinusoidal_positions`."""

    def added(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + ops.cast(sinusoidal_positions(positions, x.shape[-1]), x.dtype)


@keras.saving.register_keras_serializable("keras_transformer")
class HalvesEncoding(PositionEncoding):
    """The sinusoids of the authors' program, tensor2tensor, and of Marian, OpenNMT-tf and fairseq:
    sines in the first half of the columns, cosines in the second.

        PE(pos, i)               = sin((first + pos) / 10000^(i / (d_model / 2 - 1)))
        PE(pos, i + d_model / 2) = cos((first + pos) / 10000^(i / (d_model / 2 - 1)))

    Args:
        first: number of the first position.
        rates: "tensor2tensor" for the formula above, or "paper" for 10000^(2i / d_model), as in
            Hugging Face's MarianMT.
    """

    def __init__(self, first: int = 0, rates: str = "tensor2tensor", **kwargs: Any):
        super().__init__(**kwargs)
        if rates not in ("tensor2tensor", "paper"):
            raise ValueError(f"`rates` must be tensor2tensor or paper. Received: rates={rates!r}.")
        self.first = first
        self.rates = rates

    def added(self, x: Tensor, positions: Tensor) -> Tensor:
        check_even("d_model", x.shape[-1], "half of the columns are sines")
        half = x.shape[-1] // 2
        last = half if self.rates == "paper" else max(half - 1, 1)
        numbers = ops.cast(positions, "int32") + self.first
        halves = sines_and_cosines(numbers, np.arange(half) / last)
        return x + ops.cast(ops.concatenate(halves, axis=-1), x.dtype)


@keras.saving.register_keras_serializable("keras_transformer")
class LearnedEncoding(PositionEncoding):
    """A learned vector for each position (table 3, row E), one table for source and target.

    Positions beyond the last of the table get the last one's vector.

    Args:
        max_positions: rows of the table.

    Reference: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", section 3.1.
    """

    def __init__(self, max_positions: int = 1024, **kwargs: Any):
        super().__init__(**kwargs)
        check_sizes(max_positions=max_positions)
        self.max_positions = max_positions

    def build(self, x_shape):
        self.table = self.add_weight(
            name="table",
            shape=(self.max_positions, x_shape[-1]),
            initializer=keras.initializers.RandomNormal(stddev=x_shape[-1] ** -0.5),
        )

    def added(self, x: Tensor, positions: Tensor) -> Tensor:
        rows = ops.minimum(positions, self.max_positions - 1)
        return x + ops.cast(ops.take(self.table, rows, axis=0), x.dtype)


@keras.saving.register_keras_serializable("keras_transformer")
class NoEncoding(PositionEncoding):
    """No encoding: for attentions that know positions themselves, or for no positions at all.

    An encoder without any positions reads a bag of words. A decoder still knows how many tokens it
    may attend to.
    """

    def added(self, x: Tensor, positions: Tensor) -> Tensor:
        return x


@keras.saving.register_keras_serializable("keras_transformer")
class PositionalEmbedding(Layer):
    """One table E of (V, d_model) for both embeddings and the pre-softmax projection ("we share the
    same weight matrix").

        embedding: Dropout(TokenDropout(E[ids]) * sqrt(d_model) + PE(positions))
        reverse:   x E^T, plus a bias (V,) if it has one

    Args:
        vocabulary_size: V.
        d_model: width of the embedding.
        dropout: probability in [0, 255/256], applied to "the sums of the embeddings and the
            positional encodings".
        encoding: PE, a `PositionEncoding`; the layer makes its own copy. Default:
            `SinusoidalEncoding()`, the paper's.
        token_dropout: probability in [0, 255/256] that a token's whole embedding becomes 0, before
            its position is added; the paper has none.
        scaled: whether E[ids] is multiplied by sqrt(d_model), as in the paper. BERT and GPT-2 do
            not.
        output_bias: whether the projection adds a bias, as Marian's does. The paper's does not.

    Call arguments:
        inputs: ids, integers (B, T); with `reverse=True` activations, (B, T, d_model).
        positions: integers broadcastable to (B, T); 0, 1, 2... by default.
        reverse: project onto the vocabulary instead of embedding.

    Returns:
        (B, T, d_model); with `reverse=True` logits, (B, T, V).

    Example:
        embedding = PositionalEmbedding(vocabulary_size=8000, d_model=256)
        x = embedding(ids)
        logits = embedding(x, reverse=True)

    References: Press and Wolf 2016, "Using the Output Embedding to Improve Language Models";
        Sennrich and Zhang 2019, "Revisiting Low-Resource Neural Machine Translation", section 3.3.
    """

    def __init__(
        self,
        vocabulary_size: int,
        d_model: int,
        dropout: float = 0.0,
        encoding: PositionEncoding | dict[str, Any] | None = None,
        token_dropout: float = 0.0,
        scaled: bool = True,
        output_bias: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.input_spec = keras.InputSpec(min_ndim=2)
        check_sizes(vocabulary_size=vocabulary_size, d_model=d_model)
        self.vocabulary_size = vocabulary_size
        self.d_model = d_model
        self.dropout = dropout
        self.token_dropout = token_dropout
        self.scaled = scaled
        self.output_bias = output_bias
        self.sum_dropout = Dropout(dropout, dtype=self.dtype_policy, name="sum_dropout")
        self.whole_tokens = Dropout(token_dropout, dtype=self.dtype_policy, name="whole_tokens")
        encoding = encoding or SinusoidalEncoding()
        self.encoding = like(encoding, PositionEncoding, self.dtype_policy, "encoding")

    def build(self, inputs_shape):
        # A standard deviation of d_model^-0.5 gives embeddings of unit variance after the scaling
        # by sqrt(d_model), and logits of unit variance.
        self.table = self.add_weight(
            name="table",
            shape=(self.vocabulary_size, self.d_model),
            initializer=keras.initializers.RandomNormal(stddev=self.d_model**-0.5),
        )
        zeros = {"shape": (self.vocabulary_size,), "initializer": "zeros"}
        self.bias = self.add_weight(name="output_bias", **zeros) if self.output_bias else None
        self.encoding.build((None, None, self.d_model))

    @property
    def is_laid_out(self) -> bool:
        """Whether steppers lay out E^T: E is small enough, or must be copied anyway to cast it."""
        policy = self.dtype_policy
        is_cast = policy.variable_dtype != policy.compute_dtype
        return is_cast or math.prod(self.table.shape) <= MOST_LAID_OUT

    def matrix(self, laid_out: Tensor | None = None) -> Matrix:
        """Return E^T as a `Matrix`; `laid_out` reuses the layout of an earlier one."""
        return Matrix([ops.transpose(self.table)], self.dtype_policy, laid_out=laid_out)

    def call(
        self, inputs: Tensor, positions: Tensor | None = None, reverse: bool = False
    ) -> Tensor:
        if reverse:
            logits = ops.matmul(inputs, ops.transpose(self.table))
            return logits if self.bias is None else logits + self.bias
        # A Keras input without a dtype is float32. Mixed precision would round its ids.
        if self.compute_dtype != "float32" and not keras.backend.is_int_dtype(inputs.dtype):
            raise ValueError(
                f"ids must be integers. Received: {inputs.dtype}. Begin with "
                'keras.Input((None,), dtype="int32").'
            )
        inputs = ops.cast(inputs, "int32")
        if positions is None:
            positions = ops.arange(ops.shape(inputs)[1])[None]
        x = ops.take(self.table, inputs, axis=0) * (self.d_model**0.5 if self.scaled else 1.0)
        if self.token_dropout:
            x = x * self.whole_tokens(ops.ones((*ops.shape(inputs), 1), dtype=x.dtype))
        return self.sum_dropout(self.encoding.added(x, positions))
