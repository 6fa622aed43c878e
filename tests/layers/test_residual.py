"""Sections 3.1 and 5.4: where dropout, residual sum and norm stand around a sublayer; what dropout
drops; what norms give, and their gradients.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import paper
from small_model import shaken

from keras_transformer.layers import (
    DecoderLayer,
    Dropout,
    EncoderLayer,
    LayerNormalization,
    NormPlacement,
    PostNorm,
    PreNorm,
    RmsNormalization,
)
from keras_transformer.layers.add_and_norm import depth_scaled, glorot

PLACEMENTS = pytest.mark.parametrize("placement", [PostNorm, PreNorm])
ORACLES = {PostNorm: paper.post_norm, PreNorm: paper.pre_norm}


@pytest.fixture
def x(random):
    return 2 * random(2, 5, 8) + 1


@pytest.fixture
def sublayer(random):
    """A linear map with a by-product."""
    kernel = random(8, 8)

    def apply(x):
        return keras.ops.matmul(x, kernel), "by-product"

    return apply


def output(layer, x, sublayer, **more):
    return np.array(layer(x, sublayer=sublayer, **more)[0])


@PLACEMENTS
def test_a_placement_is_its_formula_in_float64_and_not_the_other_one(placement, x, sublayer, rng):
    layer = shaken(rng, placement(0.5), x, spread=0.3, sublayer=sublayer)
    results = {
        kind: oracle(x, lambda x: np.asarray(sublayer(x)[0]), *layer.get_weights())
        for kind, oracle in ORACLES.items()
    }
    actual = output(layer, x, sublayer)
    np.testing.assert_allclose(actual, results.pop(placement), rtol=0, atol=1e-5)
    [wrong] = results.values()
    assert np.abs(actual - wrong).max() > 0.1


@PLACEMENTS
def test_dropout_spares_the_residual_path(placement, x):
    layer = placement(0.9)

    def zeros(x):
        return 0 * x, None

    dropped = output(layer, x, zeros, training=True)
    np.testing.assert_allclose(dropped, output(layer, x, zeros), rtol=1e-6, atol=1e-6)


def test_a_placement_is_named_by_its_class_or_its_registered_name():
    for norm in (PreNorm, "keras_transformer>PreNorm"):
        assert type(EncoderLayer(2, 8, 16, norm=norm).feed_forward_norm) is PreNorm
    for wrong in ("pre", "keras_transformer>FeedForward", LayerNormalization, PreNorm(), None):
        message = r"^`norm` must be a subclass of NormPlacement.*Received: norm=.*Try "
        with pytest.raises(ValueError, match=message):
            EncoderLayer(2, 8, 16, norm=wrong)


def test_another_placement_can_be_handed_in(x, random):
    @keras.saving.register_keras_serializable("tests")
    class Unnormalized(NormPlacement):
        def call(self, x, sublayer):
            y, by_product = sublayer(x)
            return x + y, by_product

    layer = DecoderLayer(2, 8, 16, norm=Unnormalized)
    layer(x, x)
    assert layer.get_config()["norm"] == "tests>Unnormalized"
    for name in ("self_attention", "cross_attention", "feed_forward"):
        [kernel] = getattr(layer, name).get_weights()[-1:]
        assert kernel.shape[-1] == 8
    for matrix in layer.weights:
        matrix.assign(0 * matrix)
    np.testing.assert_array_equal(layer(x, x), x)


@pytest.mark.parametrize("branches", [1, 12, 18])
def test_the_residual_initializer_is_glorot_s_over_the_root_of_the_branches(branches):
    values = np.array(depth_scaled(branches)((300, 500)))
    bound = (6 / (300 + 500) / branches) ** 0.5
    unscaled = np.abs(glorot(branches)((300, 500))).max()
    assert 0.99 * bound * branches**0.5 < unscaled <= bound * branches**0.5
    assert 0.99 * bound < np.abs(values).max() <= bound
    assert values.std() == pytest.approx(bound / 3**0.5, rel=0.02)


# Section 5.4: each entry is dropped independently with probability P_drop; the rest is scaled to
# keep the expectation.
ONES = np.ones((64, 128, 64), "float32")


@pytest.fixture(autouse=True)
def _seed():
    keras.utils.set_random_seed(0)


def shares_dropped(layer, calls):
    """The share of zeros in each call."""
    dropped = tf.function(
        lambda: tf.reduce_mean(tf.cast(layer(tf.constant(ONES), training=True) == 0, "float32"))
    )
    return [float(dropped()) for _ in range(calls)]


def test_entries_are_zero_or_scaled():
    dropped = np.array(Dropout(0.2)(ONES, training=True))
    np.testing.assert_allclose(np.unique(dropped), [0, 1.25])
    assert abs(dropped.mean() - 1) < 0.02


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.25, 0.5, 0.9, 255 / 256])
def test_a_call_drops_by_a_byte_and_many_calls_by_the_rate(rate):
    layer = Dropout(rate)
    shares = shares_dropped(layer, 60)
    # A call drops at most with the next 256th above the rate.
    most = min(np.ceil(256 * rate) / 256, 0.5)
    sampling = 5 * (max(most, rate) * (1 - rate) / ONES.size) ** 0.5
    assert all(
        np.floor(256 * rate) / 256 - sampling < share < np.ceil(256 * rate) / 256 + sampling
        for share in shares
    )
    # The threshold varies by less than one part in 256 from call to call.
    assert abs(np.mean(shares) - rate) < 5 * (1 / 256 / 2 + sampling / 5) / 60**0.5


def test_entries_are_dropped_independently_and_anew_at_each_call():
    layer = Dropout(0.5)
    first, second = (np.array(layer(ONES, training=True)).reshape(-1) > 0 for _ in range(2))
    correlations = [
        np.corrcoef(first, second)[0, 1],
        *(np.corrcoef(first[:-lag], first[lag:])[0, 1] for lag in (1, 2, 3, 4, 64)),
    ]
    assert np.abs(correlations).max() < 5 / first.size**0.5


def test_the_gradient_of_a_dropped_entry_is_zero():
    x, layer = tf.constant(ONES[:2]), Dropout(0.3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        dropped = layer(x, training=True)
    np.testing.assert_array_equal(tape.gradient(dropped, x, tf.fill(x.shape, 2.0)), 2 * dropped)


def test_outside_of_training_and_at_rate_zero_nothing_is_dropped():
    np.testing.assert_array_equal(Dropout(0.5)(ONES), ONES)
    np.testing.assert_array_equal(Dropout(0.0)(ONES, training=True), ONES)
    assert Dropout(0.0).variables == []


@pytest.mark.parametrize("shape", [(3,), (1, 5), (0, 4), (2, 3, 7)])
@pytest.mark.parametrize("sizes", ["known sizes", "unknown sizes"])
def test_any_shape_known_or_not_is_dropped_as_in_eager_mode(shape, sizes):
    def dropped(call):
        keras.utils.set_random_seed(1)
        layer = Dropout(0.5)
        return call(layer)(tf.ones(shape)).numpy()

    signature = [tf.TensorSpec(shape if sizes == "known sizes" else [None] * len(shape))]
    eager = dropped(lambda layer: lambda x: layer(x, training=True))
    traced = dropped(
        lambda layer: tf.function(lambda x: layer(x, training=True), input_signature=signature)
    )
    assert traced.shape == shape
    np.testing.assert_array_equal(traced, eager)


def test_the_seed_of_the_process_decides_what_is_dropped():
    def of_seed(seed):
        keras.utils.set_random_seed(seed)
        return np.array(Dropout(0.5)(ONES, training=True))

    np.testing.assert_array_equal(of_seed(1), of_seed(1))
    assert (of_seed(1) != of_seed(2)).any()


# Section 3.1: layer normalization and its explicit gradient, against float64, Keras and torch.
@pytest.fixture
def upstream(random):
    return random(2, 5, 8)


def gradients_of(layer, x, upstream):
    """Output, and gradients by x, gamma and beta."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    return [
        value.numpy()
        for value in (
            y,
            *tape.gradient(y, [x, *layer.trainable_variables], tf.cast(upstream, y.dtype)),
        )
    ]


def test_normalization_and_its_gradient_are_those_of_keras(x, upstream, randomized):
    ours = randomized(LayerNormalization(epsilon=1e-3), x)
    theirs = randomized(keras.layers.LayerNormalization(epsilon=1e-3), x)
    theirs.set_weights(ours.get_weights())
    for mine, reference in zip(
        gradients_of(ours, x, upstream),
        gradients_of(theirs, x, upstream),
        strict=True,
    ):
        np.testing.assert_allclose(mine, reference, rtol=1e-5, atol=1e-5)


def test_a_constant_row_gives_the_bias_and_a_finite_gradient(upstream, randomized):
    x = np.full((2, 5, 8), 3.0, "float32")
    layer = randomized(LayerNormalization(), x)
    y, *gradients = gradients_of(layer, x, upstream)
    np.testing.assert_allclose(
        y, np.broadcast_to(layer.get_weights()[1], x.shape), atol=1e-3
    )  # float32 times epsilon^-0.5 = 1000
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_large_means_do_not_swallow_the_variance(x, randomized):
    layer = randomized(LayerNormalization(), x)
    shifted = (x * 2**10).round() / 2**10 + 2**10  # exact in float32
    np.testing.assert_allclose(
        layer(shifted), paper.layer_norm(shifted, *layer.get_weights()), rtol=0, atol=1e-5
    )


def test_bfloat16_is_normalized_in_float32(x, upstream, randomized):
    layer = randomized(LayerNormalization(dtype="mixed_bfloat16"), x)
    assert {weight.dtype for weight in layer.weights} == {"float32"}
    rounded = tf.cast(x, "bfloat16")
    y, d_x, d_gamma, d_beta = gradients_of(layer, rounded, upstream)
    assert y.dtype == d_x.dtype == rounded.dtype
    assert d_gamma.dtype == d_beta.dtype == "float32"
    expected = paper.layer_norm(tf.cast(rounded, "float32").numpy(), *layer.get_weights())
    assert (
        np.abs(tf.cast(y, "float32").numpy() - expected).max() <= np.abs(expected).max() * 2**-8
    )  # one rounding


def test_gain_and_bias_are_float32_even_where_all_weights_are_bfloat16(x):
    layer = LayerNormalization(dtype="bfloat16")
    layer.build(x.shape)
    assert [weight.dtype for weight in layer.weights] == ["float32", "float32"]


def test_epsilon_is_a_millionth_by_default():
    assert LayerNormalization().epsilon == 1e-6
    row = np.array([[-1e-3, 1e-3]], "float32")  # of variance 1e-6, as large as epsilon
    np.testing.assert_allclose(LayerNormalization()(row), row * 1e3 / 2**0.5, rtol=1e-5)


def test_the_root_mean_square_is_that_of_torch(x, randomized):
    torch = pytest.importorskip("torch")
    layer = randomized(RmsNormalization(1e-3), x)
    theirs = torch.nn.RMSNorm(x.shape[-1], eps=1e-3)
    theirs.weight.data = torch.tensor(layer.gamma.numpy())
    expected = theirs(torch.tensor(np.array(x))).detach().numpy()
    np.testing.assert_allclose(np.array(layer(x)), expected, rtol=1e-6, atol=1e-6)
    # The mean is not subtracted.
    assert abs(np.array(layer(x + 1)) - np.array(layer(x))).max() > 0.1
