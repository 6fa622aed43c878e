"""Matrices laid out for decoding give the products of those they were made of. That steps equal
`call`: test_decoder.py.
"""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import Decoder, Matrix, causal_mask
from keras_transformer.layers.stepping import EXTRA, UNFAVOURABLE

FLOAT32 = keras.DTypePolicy("float32")


@pytest.mark.parametrize(
    "widths",
    [[5], [5, 3, 5], [UNFAVOURABLE], [UNFAVOURABLE // 2, UNFAVOURABLE // 2], [UNFAVOURABLE + 1]],
)
def test_the_products_are_those_of_each_matrix(widths, random):
    x, kernels = random(7, 6), [random(6, width) for width in widths]
    products = Matrix([ops.convert_to_tensor(kernel) for kernel in kernels], FLOAT32)(x)
    for product, kernel in zip(products, kernels, strict=True):
        np.testing.assert_allclose(product, x.astype("float64") @ kernel, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("width", "stored"),
    [(UNFAVOURABLE, UNFAVOURABLE + EXTRA), (UNFAVOURABLE + 1, UNFAVOURABLE + 1), (8, 8)],
)
def test_only_an_unfavourable_width_is_filled_up(width, stored, random):
    assert Matrix([ops.convert_to_tensor(random(6, width))], FLOAT32)._kernel.shape == (6, stored)


@pytest.mark.parametrize("d_ff", [16, UNFAVOURABLE])
def test_steps_equal_call_where_matrices_are_filled_up(d_ff, random, randomized):
    x, memory = random(2, 3, 8), random(2, 4, 8)
    decoder = randomized(Decoder(2, num_heads=2, d_model=8, d_ff=d_ff), x, memory)
    stepper, past, cache = decoder.stepper(), decoder.empty_past(2), decoder.memory_cache(memory)
    for t in range(3):
        output, past = stepper(x[:, t : t + 1], past, cache)
        np.testing.assert_allclose(output[:, 0], decoder(x, memory)[:, t], rtol=0, atol=1e-5)


def test_a_stepper_tells_what_the_last_layer_s_heads_attend_to(random, randomized):
    x, memory, mask = (
        random(2, 3, 8),
        random(2, 4, 8),
        np.array([[[1, 1, 1, 0]], [[1, 1, 1, 1]]], bool),
    )
    decoder = randomized(Decoder(3, num_heads=2, d_model=8, d_ff=16), x, memory)
    _, to_target, to_memory = decoder.attentive(x, memory, mask)
    assert (to_target.shape, to_memory.shape) == ((2, 3, 2, 3, 3), (2, 3, 2, 3, 4))
    stepper, past = decoder.stepper(), decoder.empty_past(2)
    for t in range(3):
        _, past, attention = stepper.attentive(
            x[:, t : t + 1], past, decoder.memory_cache(memory), mask
        )
        np.testing.assert_allclose(
            attention[:, 0], np.mean(to_memory[:, -1, :, t], axis=1), rtol=0, atol=1e-6
        )
        assert np.abs(attention[:, 0] - np.mean(to_memory[:, 0, :, t], axis=1)).max() > 1e-3


def test_attention_weights_are_shares_of_what_may_be_seen(random, randomized):
    x, memory, mask = (
        random(2, 3, 8),
        random(2, 4, 8),
        np.array([[[1, 1, 1, 0]], [[1, 1, 1, 1]]], bool),
    )
    decoder = randomized(Decoder(2, num_heads=2, d_model=8, d_ff=16), x, memory)
    output, to_target, to_memory = (np.array(part) for part in decoder.attentive(x, memory, mask))
    np.testing.assert_allclose(output, decoder(x, memory, memory_mask=mask), rtol=0, atol=1e-6)
    np.testing.assert_allclose(to_target.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(to_memory.sum(-1), 1, atol=1e-6)
    assert not to_target[..., ~np.array(causal_mask(3))[0]].any()
    assert not to_memory[0, ..., 3].any()
    assert to_memory[1, ..., 3].all()
    # The second layer's, from what the first one gives.
    first = decoder.layers[0](x, memory, attention_mask=causal_mask(3), memory_mask=mask)
    expected = decoder.layers[1].attentive(first, memory, causal_mask(3), mask)
    np.testing.assert_allclose(to_target[:, 1], expected[1], rtol=0, atol=1e-6)
    np.testing.assert_allclose(to_memory[:, 1], expected[2], rtol=0, atol=1e-6)
