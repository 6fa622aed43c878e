"""Sections 3.1 and 5.4: where dropout, residual sum and norm stand around a sublayer."""

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.layers import (
    DecoderLayer,
    EncoderLayer,
    LayerNormalization,
    NormPlacement,
    PostNorm,
    PreNorm,
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


def shaken(placement, x, sublayer, rng):
    layer = placement(0.5)
    layer(x, sublayer=sublayer)
    layer.set_weights([rng.normal(weight, 0.3) for weight in layer.get_weights()])
    return layer


@PLACEMENTS
def test_it_is_the_formula_in_float64_and_not_the_other_one(placement, x, sublayer, rng):
    layer = shaken(placement, x, sublayer, rng)
    results = {
        kind: oracle(x, lambda x: np.asarray(sublayer(x)[0]), *layer.get_weights())
        for kind, oracle in ORACLES.items()
    }
    actual = output(layer, x, sublayer)
    np.testing.assert_allclose(actual, results.pop(placement), rtol=0, atol=1e-5)
    [other] = results.values()
    assert np.abs(actual - other).max() > 0.1


@PLACEMENTS
def test_its_weights_are_one_gain_and_one_bias(placement, x, sublayer):
    layer = placement(0.1, name="p")
    layer(x, sublayer=sublayer)
    assert layer(x, sublayer=sublayer)[1] == "by-product"
    assert [weight.path for weight in layer.weights] == ["p/norm/gamma", "p/norm/beta"]
    assert layer.norm.epsilon == 1e-6


@PLACEMENTS
def test_dropout_spares_the_residual_path(placement, x):
    layer = placement(0.9)

    def zeros(x):
        return 0 * x, None

    np.testing.assert_allclose(
        output(layer, x, zeros, training=True), output(layer, x, zeros), rtol=1e-6, atol=1e-6
    )


@PLACEMENTS
def test_dropout_preserves_the_expectation_of_the_sublayer_s_output(placement, monkeypatch):
    keras.utils.set_random_seed(0)
    x = np.zeros((16, 32, 64), "float32")

    def ones(x):
        return x + 1, None

    layer = placement(0.2)
    layer(x, sublayer=ones)
    monkeypatch.setattr(layer, "norm", lambda total: total)
    out = output(layer, x, ones, training=True)
    np.testing.assert_allclose(np.unique(out), [0, 1.25])
    assert abs(out.mean() - 1) < 4 * (0.2 / 0.8 / out.size) ** 0.5
    assert np.mean(out == 0) > 0.1


def test_post_norm_ends_a_stack_with_nothing_and_pre_norm_with_a_norm(x):
    policy = keras.DTypePolicy("mixed_bfloat16")
    nothing = PostNorm.end_of_stack(1e-6, dtype=policy)
    norm = PreNorm.end_of_stack(1e-6, dtype=policy)
    assert (nothing.name, norm.name) == ("final_norm", "final_norm")
    rounded = keras.ops.cast(x, "bfloat16")
    np.testing.assert_array_equal(
        keras.ops.cast(nothing(rounded), "float32"), keras.ops.cast(rounded, "float32")
    )
    assert nothing.variables == []
    assert isinstance(norm, LayerNormalization)
    assert (norm.epsilon, norm.compute_dtype) == (1e-6, "bfloat16")


def test_a_placement_is_named_by_its_class_or_its_registered_name():
    for norm in (PreNorm, "keras_transformer>PreNorm"):
        assert type(EncoderLayer(2, 8, 16, norm=norm).feed_forward_norm) is PreNorm
    for wrong in ("pre", "keras_transformer>FeedForward", LayerNormalization, PreNorm(), None):
        with pytest.raises(
            ValueError, match=r"^`norm` must be a subclass of NormPlacement.*Received: norm=.*Try "
        ):
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
