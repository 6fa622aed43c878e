"""Section 3.5: the sinusoids in float64, at every position that training meets and far beyond."""

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.layers import sinusoidal_positions


@pytest.mark.parametrize("d_model", [2, 6, 64, 512])
@pytest.mark.parametrize("positions", [range(20), range(490, 512), range(4080, 4096)], ids=str)
def test_positions_are_the_paper_s_sinusoids(positions, d_model):
    expected = paper.sinusoidal_positions(positions, d_model)
    np.testing.assert_allclose(
        sinusoidal_positions(np.array(positions), d_model), expected, rtol=1e-6, atol=1e-6
    )


def test_the_bound_is_out_of_reach_of_plain_float32():
    positions = np.arange(4000, 4096, dtype="float32")
    angles = positions[:, None] * np.float32(10000) ** (-np.arange(0, 64, 2, dtype="float32") / 64)
    assert np.abs(np.sin(angles) - paper.sinusoidal_positions(positions, 64)[:, ::2]).max() > 1e-5


def test_sines_and_cosines_are_interleaved():
    first = np.array(sinusoidal_positions(np.array([0]), 6))
    np.testing.assert_array_equal(first, [[0, 1, 0, 1, 0, 1]])


def test_positions_may_have_any_shape():
    flat = np.array(sinusoidal_positions(np.arange(6), 8))
    np.testing.assert_allclose(
        sinusoidal_positions(np.arange(6).reshape(2, 3), 8),
        flat.reshape(2, 3, 8),
        rtol=0,
        atol=1e-6,
    )
    np.testing.assert_allclose(sinusoidal_positions(5, 8), flat[5], rtol=1e-6, atol=1e-6)


def test_a_fixed_offset_is_one_rotation_whatever_the_position():
    """PE(pos + k) is a linear function of PE(pos), which is why the paper chose sinusoids."""
    table = np.array(sinusoidal_positions(np.arange(40), 8))
    rotation = np.linalg.lstsq(table[:-3], table[3:], rcond=None)[0]
    np.testing.assert_allclose(table[:-3] @ rotation, table[3:], atol=1e-5)
    assert np.abs(table[:-3] - table[3:]).max() > 1


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_the_table_is_float32_whatever_the_policy(dtype):
    previous = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        table = sinusoidal_positions(np.arange(300, dtype=dtype), 8)
    finally:
        keras.config.set_dtype_policy(previous)
    assert keras.backend.standardize_dtype(table.dtype) == "float32"
    np.testing.assert_allclose(
        table, paper.sinusoidal_positions(range(300), 8), rtol=1e-6, atol=1e-6
    )


def test_an_odd_d_model_is_refused_with_a_remedy():
    with pytest.raises(ValueError, match=r"`d_model` must be even.*d_model=7\. Try 8\."):
        sinusoidal_positions(np.arange(3), 7)
