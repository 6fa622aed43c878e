"""Positional encodings (Vaswani et al. 2017, section 3.5)."""

import numpy as np
from keras import ops

from keras_transformer.layers.tensors import Tensor


def sinusoidal_positions(positions: Tensor, d_model: int) -> Tensor:
    """The paper's sinusoids, sines in the even columns and cosines in the odd ones.

        PE(pos, 2i)     = sin(pos / 10000^(2i / d_model))
        PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

    Args:
        positions: integers of any shape (...,), each in [0, 4096) for full accuracy.
        d_model: the encoding's width, even.

    Returns:
        float32, (..., d_model), within 1e-6 of the formula in float64.

    Raises:
        ValueError: if `d_model` is odd.
    """
    if d_model % 2:
        raise ValueError(
            "`d_model` must be even, because sines and cosines come in pairs. Received: "
            f"d_model={d_model}. Try {d_model + 1}."
        )
    # pos * rate in float32 would be off by 3e-5 at position 500. So each rate is split in two: its
    # 12 leading bits, whose product with a position below 2^12 is exact, and a small remainder. The
    # formula sin(a + e) = sin(a) cos(e) + cos(a) sin(e) joins both without loss.
    rates = np.exp(-np.log(10000.0) * np.arange(0, d_model, 2) / d_model)
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
    cosines = cos_angle * cos_rest - sin_angle * sin_rest
    shape = (*ops.shape(positions)[:-1], d_model)
    return ops.reshape(ops.stack([sines, cosines], axis=-1), shape)
