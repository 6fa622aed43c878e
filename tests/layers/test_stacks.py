"""Section 3.1: the layers of encoder and decoder against the equations in float64; section 3.3:
their feed-forward networks. That one step at a time gives what the whole target gives is a law of
tests/laws/test_models.py.
"""

import functools
import itertools
import math

import keras
import numpy as np
import pytest
from oracles import paper
from small_model import shaken

from keras_transformer.layers import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    GatedFeedForward,
    MultiHeadAttention,
    PatchEmbedding,
    PositionalEmbedding,
    PostNorm,
    PreNorm,
    causal_mask,
    padding_mask,
)
from keras_transformer.models import Hyperparameters
from keras_transformer.models.sized_model import stack_arguments

# One equation is within 1e-6 in float32; a chain of them, whose errors norms enlarge, within this.
ATOL = 2e-6
B, T, S, H, D_MODEL, D_FF = 3, 5, 6, 2, 8, 16
SIZES = {"num_heads": H, "d_model": D_MODEL, "d_ff": D_FF}
ORACLES = {PostNorm: paper.post_norm, PreNorm: paper.pre_norm}
NORMS = pytest.mark.parametrize("norm", [PostNorm, PreNorm])
IDS = np.array([[5, 6, 7, 8, 0, 0], [5, 6, 7, 8, 9, 5], [5, 0, 0, 0, 0, 0]])
MASK = np.array(padding_mask(IDS))


@pytest.fixture
def x(random):
    return random(B, S, D_MODEL)


@pytest.fixture
def target(random):
    return random(B, T, D_MODEL)


@pytest.fixture(scope="module", params=[PostNorm, PreNorm], ids=["post", "pre"])
def encoder(request):
    """Shared: tests must not change it."""
    encoder = Encoder(2, **SIZES, d_k=3, d_v=5, norm=request.param)
    return shaken(np.random.default_rng(1), encoder, np.zeros((B, S, D_MODEL), "float32"))


@pytest.fixture(scope="module", params=[PostNorm, PreNorm], ids=["post", "pre"])
def decoder(request):
    """Shared: tests must not change it."""
    decoder = Decoder(2, **SIZES, d_k=3, d_v=5, norm=request.param)
    inputs = [np.zeros((B, length, D_MODEL), "float32") for length in (T, S)]
    return shaken(np.random.default_rng(1), decoder, *inputs)


def is_the_paper_s(actual, norm, formula):
    """A formula with the placement of its norms, and not with the other one."""
    results = {kind: formula(oracle) for kind, oracle in ORACLES.items()}
    np.testing.assert_allclose(actual, results.pop(norm), rtol=0, atol=ATOL)
    [wrong] = results.values()
    assert np.abs(actual - wrong).max() > 0.1


WIDTHS = pytest.mark.parametrize("widths", [{}, {"d_k": 3, "d_v": 5}], ids=["paper", "free"])


@NORMS
@WIDTHS
def test_an_encoder_layer_is_the_paper_s(x, widths, norm, randomized):
    layer = randomized(EncoderLayer(**SIZES, **widths, norm=norm), x)
    for mask in (None, MASK, np.array(causal_mask(S))):
        formula = functools.partial(paper.encoder_layer, x, paper.parts(layer), H, mask)
        is_the_paper_s(layer(x, attention_mask=mask), norm, formula)


@NORMS
@WIDTHS
def test_a_decoder_layer_is_the_paper_s(target, x, widths, norm, randomized):
    layer = randomized(DecoderLayer(**SIZES, **widths, norm=norm), target, x)
    for masks in itertools.product((None, np.array(causal_mask(T))), (None, MASK)):
        formula = functools.partial(paper.decoder_layer, target, x, paper.parts(layer), H, *masks)
        actual = layer(target, x, attention_mask=masks[0], memory_mask=masks[1])
        is_the_paper_s(actual, norm, formula)


def test_the_paper_s_norm_is_the_default(x):
    for layer in (EncoderLayer(**SIZES), Encoder(1, **SIZES).layers[0]):
        assert isinstance(layer.feed_forward_norm, PostNorm)
    for layer in (DecoderLayer(**SIZES), Decoder(1, **SIZES).layers[0]):
        assert isinstance(layer.cross_attention_norm, PostNorm)


def test_an_encoder_is_its_layers_one_after_another_and_pre_norm_s_last_norm(encoder, x):
    norm = type(encoder.layers[0].feed_forward_norm)
    expected = x
    for layer in encoder.layers:
        expected = paper.encoder_layer(expected, paper.parts(layer), H, MASK, ORACLES[norm])
    if norm is PreNorm:
        expected = paper.layer_norm(expected, *encoder.final_norm.get_weights())
    np.testing.assert_allclose(encoder(x, attention_mask=MASK), expected, rtol=0, atol=ATOL)


@pytest.mark.parametrize(
    ("kind", "sublayers"),
    [
        (EncoderLayer, ["self_attention", "feed_forward"]),
        (DecoderLayer, ["self_attention", "cross_attention", "feed_forward"]),
    ],
)
def test_dropout_stands_on_each_sublayer_s_output_and_nowhere_else(x, random, kind, sublayers):
    """Training is deterministic without the Add & Norm dropouts, and random with any of them."""
    layer = kind(**SIZES, dropout=0.5)
    inputs = (x, random(B, S, D_MODEL))[: len(sublayers) - 1]
    plain = np.array(layer(*inputs))
    for alone in (None, *sublayers):
        for name in sublayers:
            getattr(layer, f"{name}_norm").sublayer_dropout.rate = 0.5 * (name == alone)
        changes = np.abs(layer(*inputs, training=True) - plain).max() > 0.1
        assert changes == (alone is not None)


def test_the_attention_of_each_layer_comes_with_the_output_of_call(encoder, x):
    output, weights = encoder.with_attention(x, MASK)
    np.testing.assert_allclose(output, encoder(x, attention_mask=MASK), rtol=1e-6, atol=1e-6)
    assert weights.shape == (B, 2, H, S, S)
    np.testing.assert_allclose(np.sum(weights, axis=-1), 1, atol=1e-6)
    assert not np.array(weights)[0, ..., 4:].any()
    first = encoder.layers[0](x, attention_mask=MASK)
    rows = zip(encoder.layers, (x, first), np.moveaxis(weights, 1, 0), strict=True)
    for layer, inputs, ours in rows:
        expected = layer.with_attention(inputs, MASK)[1]
        np.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)


def test_a_decoder_is_its_layers_one_after_another_and_causal(decoder, target, x):
    norm = type(decoder.layers[0].feed_forward_norm)
    causal = np.tril(np.ones((T, T), bool))
    expected = target
    for layer in decoder.layers:
        expected = paper.decoder_layer(
            expected, x, paper.parts(layer), H, causal, MASK, ORACLES[norm]
        )
    if norm is PreNorm:
        expected = paper.layer_norm(expected, *decoder.final_norm.get_weights())
    np.testing.assert_allclose(decoder(target, x, memory_mask=MASK), expected, rtol=0, atol=ATOL)


def test_attention_weights_are_shares_of_what_may_be_seen(decoder, target, x):
    output, weights = decoder.with_attention(target, x, MASK)
    to_target, to_memory = (np.array(part) for part in weights)
    np.testing.assert_allclose(output, decoder(target, x, memory_mask=MASK), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(to_target.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(to_memory.sum(-1), 1, atol=1e-6)
    assert not to_target[..., ~np.array(causal_mask(T))[0]].any()
    assert not to_memory[0, ..., 4:].any()
    assert to_memory[1].all()
    # The attention of the second layer, from the output of the first.
    mask = causal_mask(T)
    first = decoder.layers[0](target, x, attention_mask=mask, memory_mask=MASK)
    _, expected = decoder.layers[1].with_attention(first, x, mask, MASK)
    np.testing.assert_allclose(to_target[:, 1], expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(to_memory[:, 1], expected[1], rtol=1e-6, atol=1e-6)


def test_a_memory_that_is_missing_or_unused_is_refused():
    layer = DecoderLayer(2, 8, 16)
    # Keras builds the layers of a model again where the first attempt failed.
    for _ in range(2):
        with pytest.raises(ValueError, match=r"Without `memory`.* has_memory=False"):
            layer(np.zeros((1, 3, 8)))
    alone = Decoder(1, 2, 8, 16, has_memory=False)
    x = np.zeros((1, 3, 8), "float32")
    with pytest.raises(ValueError, match=r"and with it True\. Received: has_memory=False\. Leave "):
        alone(x, x)
    assert alone(x).shape == (1, 3, 8)
    # Once built, a layer ignored a memory, and without one it failed in its attention.
    built = layer(x, x)
    assert built.shape == (1, 3, 8)
    for call in (alone, alone.layers[0].with_attention):
        with pytest.raises(ValueError, match=r"has_memory=False\. Leave `memory` out"):
            call(x, x)
    for call in (layer, layer.with_attention):
        with pytest.raises(ValueError, match=r"has_memory=True\. Pass the encoder's output"):
            call(x)


# Section 3.3: equation 2 in float64, and what may stand in the place of its max(0, .).
def gelu(x):
    """Compute x Phi(x), by the error function."""
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def swish(x):
    """Compute x / (1 + exp(-x))."""
    return x / (1 + np.exp(-x))


FORMULAS = {"gelu": gelu, "swish": swish, "relu": lambda x: np.maximum(0.0, x)}


@pytest.mark.parametrize("activation", FORMULAS)
def test_an_activation_takes_its_place_between_the_maps(activation, x, randomized):
    of_model = stack_arguments(Hyperparameters(9, activation=activation))["activation"]
    layer = randomized(FeedForward(32, activation=of_model), x)
    w_1, b_1, w_2, b_2 = (weight.astype("float64") for weight in layer.get_weights())
    expected = {name: formula(3 * x @ w_1 + b_1) @ w_2 + b_2 for name, formula in FORMULAS.items()}
    actual = layer(3 * x)
    np.testing.assert_allclose(actual, expected.pop(activation), rtol=0, atol=5e-6)
    assert min(np.abs(actual - wrong).max() for wrong in expected.values()) > 0.01


def test_a_gated_network_with_swish_is_swiglu(x, randomized):
    layer = randomized(GatedFeedForward(32, "silu"), x)
    weights = layer.get_weights()
    assert [weight.shape for weight in weights] == [(8, 32), (32, 8), (8, 32)]
    expected = paper.swiglu(x, *weights)
    np.testing.assert_allclose(layer(x), expected, rtol=0, atol=2e-6)
    w, w_2, v = weights
    assert np.abs(expected - paper.swiglu(x, v, w_2, w)).max() > 0.01  # the gate's place counts


def test_two_thirds_of_d_ff_keep_a_gated_network_s_parameters(x):
    plain, gated = FeedForward(48), GatedFeedForward(32)
    plain(x), gated(x)
    assert gated.count_params() == plain.count_params() - 48 - 8  # it has no biases


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_dropout_stands_behind_the_activation_in_training_only(kind, x):
    keras.utils.set_random_seed(0)
    layer = kind(400, dropout=0.25)
    np.testing.assert_array_equal(layer(x), layer(x, training=False))
    layer.outer.kernel.assign(np.eye(400, 8))
    # The output is the first eight units of the inner layer.
    plain, dropped = np.array(layer(x)), np.array(layer(x, training=True))
    is_kept = dropped != 0
    np.testing.assert_allclose(dropped[is_kept], plain[is_kept] / 0.75, rtol=1e-5)
    assert not is_kept[plain != 0].all()


@pytest.mark.parametrize(
    ("layer", "shape", "message"),
    [
        (EncoderLayer(**SIZES), (B, S, 9), "axis -1 of input shape to have value 8"),
        (DecoderLayer(**SIZES, has_memory=False), (B, S, 9), "to have value 8"),
        (Encoder(2, **SIZES), (B, S, 9), "to have value 8"),
        (Encoder(2, **SIZES), (S, D_MODEL), "expected ndim=3, found ndim=2"),
        (MultiHeadAttention(H, D_MODEL), (S, D_MODEL), "expected ndim=3"),
        (PositionalEmbedding(10, D_MODEL), (S,), "expected min_ndim=2"),
        (PatchEmbedding(2, D_MODEL), (B, S, 8), "expected ndim=4"),
    ],
)
def test_an_input_of_another_shape_is_refused_with_its_shape(layer, shape, message):
    x = np.zeros(shape, "float32")
    inputs = [x] * (3 if isinstance(layer, MultiHeadAttention) else 1)
    with pytest.raises(ValueError, match=message) as raised:
        layer(*inputs)
    assert str(shape) in str(raised.value)
    with pytest.raises(ValueError, match=r"a height and a width\. .*: None and 8\. Give both"):
        PatchEmbedding(2, D_MODEL)(keras.Input((None, 8, 3)))
