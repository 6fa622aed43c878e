"""Kernels laid out for decoding give the products of the kernels that they were made of."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.layers import Matrix
from keras_transformer.layers.linear_maps import EXTRA, UNFAVOURABLE

FLOAT32 = keras.DTypePolicy("float32")


@pytest.mark.parametrize(
    "widths",
    [[5], [5, 3, 5], [UNFAVOURABLE], [UNFAVOURABLE // 2, UNFAVOURABLE // 2], [UNFAVOURABLE + 1]],
)
def test_the_products_are_those_of_each_kernel(widths, random):
    x = random(7, 6)
    kernels = [random(6, width) for width in widths]
    products = Matrix([ops.convert_to_tensor(kernel) for kernel in kernels], FLOAT32)(x)
    for product, kernel in zip(products, kernels, strict=True):
        np.testing.assert_allclose(product, x.astype("float64") @ kernel, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("width", "stored"),
    [
        (UNFAVOURABLE, UNFAVOURABLE + EXTRA),
        (2 * UNFAVOURABLE, 2 * UNFAVOURABLE + EXTRA),
        (UNFAVOURABLE + 1, UNFAVOURABLE + 1),
        (8, 8),
    ],
)
def test_only_an_unfavourable_width_is_filled_up(width, stored, random):
    assert Matrix([ops.convert_to_tensor(random(6, width))], FLOAT32)._kernel.shape == (6, stored)


@pytest.mark.parametrize(
    ("policy", "kept", "given"),
    [("float32", "float32", "float32"), ("mixed_bfloat16", "bfloat16", "bfloat16")],
)
def test_kernels_and_products_have_the_policy_s_types(policy, kept, given, random):
    matrix = Matrix([ops.convert_to_tensor(random(6, 5))], keras.DTypePolicy(policy))
    assert keras.backend.standardize_dtype(matrix._kernel.dtype) == kept
    assert keras.backend.standardize_dtype(matrix(random(2, 6))[0].dtype) == given


def test_a_row_is_filled_up_where_rows_lie_2_kb_apart_and_by_one_line_of_the_cache():
    assert UNFAVOURABLE * 4 == 2048
    assert EXTRA * 4 == 64
