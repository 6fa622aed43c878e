"""Table 1's layers: what the paper says of each, and how far a stack of them reaches."""

import keras
import pytest

from benchmarks.paper import table1_layers

WIDTH = 2
SIZES = {"width": WIDTH, "num_heads": 1, "radius": 4, "rank": 4, "kernel": 3}


def layers_to_reach(name, length):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    try:
        layer = table1_layers.make(name, length, **SIZES)
        return table1_layers.layers_to_reach(layer, length, WIDTH)
    finally:
        keras.config.set_dtype_policy(before)


# L dilated kernels of 3 reach 2 (1 + 3 + ... + 3^(L - 1)) = 3^L - 1 positions back, contiguous ones
# L to either side.
@pytest.mark.parametrize(
    ("name", "length", "layers"),
    [
        ("dilated convolution", 9, 2),
        ("dilated convolution", 10, 3),
        ("dilated convolution", 27, 3),
        ("dilated convolution", 28, 4),
        ("convolution", 14, 13),
        ("separable convolution", 14, 13),
        ("restricted", 14, 4),
        ("self-attention", 14, 1),
    ],
)
def test_as_many_layers_lie_between_both_ends_as_can_be_counted_by_hand(name, length, layers):
    assert layers_to_reach(name, length) == layers


def test_each_layer_has_what_the_paper_says_of_it():
    assert table1_layers.PAPER.keys() == table1_layers.LAYERS.keys()
    paths = {name: path for name, (_, _, path) in table1_layers.PAPER.items()}
    # Table 1 has this row's; n / k stands in section 4's text.
    assert paths["dilated convolution"] == "log_k n"
    assert paths["convolution"] == "n / k (contiguous)"


def test_what_is_timed_computes_in_float32(benchmark_of):
    """Layers and depth are counted in float64, in the same process and before."""
    benchmark_of("paper.table1").counts("convolution")
    assert table1_layers.make("convolution", 16, **SIZES).compute_dtype == "float32"
