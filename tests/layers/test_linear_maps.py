"""Law: what bfloat16 learns at a bias is what float32 learns, however many positions add to it.
`tests/models/test_bfloat16.py` has the law of all weights. And what kernels that are laid out for
decoding give.
"""

import importlib.util
import json
import os
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from shell import printed

from keras_transformer.layers import Matrix
from keras_transformer.layers.convolutions import Conv1D
from keras_transformer.layers.linear_maps import EXTRA, UNFAVOURABLE, Dense

POSITIONS = 6000
SAME = {"padding": "same"}
CAUSAL = {"padding": "causal"}
MAPS = {
    "linear": (Dense, keras.layers.Dense, {"units": 5, "activation": "relu"}),
    "linear, no bias": (Dense, keras.layers.Dense, {"units": 5, "use_bias": False}),
    "same": (Conv1D, keras.layers.Conv1D, {"filters": 5, "kernel_size": 3} | SAME),
    "same, even": (Conv1D, keras.layers.Conv1D, {"filters": 5, "kernel_size": 4} | SAME),
    "causal": (Conv1D, keras.layers.Conv1D, {"filters": 5, "kernel_size": 2} | CAUSAL),
}


def built(layer):
    """The layer with numbers that depend on its shapes alone."""
    layer.build((None, None, 3))
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(size=weight.shape) for weight in layer.weights])
    return layer


def learned(layer, x):
    """Output and gradients, of a loss whose gradient at each position is about 1."""
    with tf.GradientTape() as tape:
        y = tf.cast(layer(x), tf.float32)
        loss = tf.reduce_sum(y * tf.linspace(0.5, 1.5, tf.size(y[..., :1]))[:, None])
    return y, tape.gradient(loss, layer.trainable_variables)


@pytest.mark.parametrize("name", MAPS)
def test_output_and_gradients_are_those_of_keras(name):
    ours, keras_own, sizes = MAPS[name]
    x = np.random.default_rng(0).normal(size=(1, 7, 3)).astype("float32")
    learned_by_keras = tf.nest.flatten(learned(built(keras_own(**sizes)), x))
    learned_by_ours = tf.nest.flatten(learned(built(ours(**sizes)), x))
    for actual, expected in zip(learned_by_ours, learned_by_keras, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["linear", "linear, no bias"])
def test_an_adapter_of_keras_is_applied_and_learns(name):
    """Keras' method was inherited, and its adapter was ignored."""
    x = np.random.default_rng(0).normal(size=(1, 7, 3)).astype("float32")
    results = []
    for kind in MAPS[name][:2]:
        layer = built(kind(**MAPS[name][2]))
        layer.enable_lora(2, lora_alpha=3)
        random = np.random.default_rng(2)
        for weight in (layer.lora_kernel_a, layer.lora_kernel_b):
            weight.assign(random.normal(size=weight.shape))
        results.append([*tf.nest.flatten(learned(layer, x)), layer.kernel])
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def bias_error(kind, sizes):
    """How far the gradient of the bias in bfloat16 is from that in float32, relatively."""
    x = np.random.default_rng(0).normal(size=(1, POSITIONS, 3)).astype("float32")
    ours, exact = (
        learned(built(kind(**sizes, dtype=policy)), x)[1][-1].numpy().astype("float64")
        for policy in ("mixed_bfloat16", "float32")
    )
    return np.linalg.norm(ours - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("name", [name for name in MAPS if "no bias" not in name])
def test_a_bias_s_gradient_in_bfloat16_counts_every_position(name):
    ours, _, sizes = MAPS[name]
    assert bias_error(ours, sizes) < 0.02


# The gradient of a bias over 100,000 positions whose gradients are about 1, compiled.
ON_JAX = """
import jax, jax.numpy as jnp, json
from keras_transformer.layers.linear_maps import plus_bias

y = jnp.zeros((1, 100_000, 3), "bfloat16")
weights = jnp.linspace(0.5, 1.5, 100_000)[None, :, None]

def gradient(added):
    loss = lambda bias: jnp.sum(added(y, bias).astype("float32") * weights)
    return jax.jit(jax.grad(loss))(jnp.zeros(3)).tolist()

print(json.dumps([gradient(plus_bias), gradient(lambda y, bias: y + bias.astype(y.dtype))]))
"""


@pytest.mark.skipif(not importlib.util.find_spec("jax"), reason="JAX is not installed")
def test_jax_counts_every_position_too():
    environment = os.environ | {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    output = printed(sys.executable, "-c", ON_JAX, env=environment)
    ours, plain = json.loads(output.splitlines()[-1])
    np.testing.assert_allclose(ours, 100_000, rtol=0.01)
    assert max(plain) < 50_000  # a control: JAX's own sum


# Kernels laid out for decoding give the products of the kernels that they were made of.
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
    assert Matrix([ops.convert_to_tensor(random(6, width))], FLOAT32).laid_out.shape == (6, stored)


@pytest.mark.parametrize(
    ("policy", "dtype"), [("float32", "float32"), ("mixed_bfloat16", "bfloat16")]
)
def test_kernels_and_products_have_the_policy_s_types(policy, dtype, random):
    matrix = Matrix([ops.convert_to_tensor(random(6, 5))], keras.DTypePolicy(policy))
    assert keras.backend.standardize_dtype(matrix.laid_out.dtype) == dtype
    assert keras.backend.standardize_dtype(matrix(random(2, 6))[0].dtype) == dtype
