"""Section 3.1: the encoder's layers against the equations in float64, and what must not matter to
them.
"""

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.layers import (
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    PostNorm,
    PreNorm,
    causal_mask,
    padding_mask,
)

# Of one equation float32 gives 1e-6; of a chain of them, which norms stretch on the way, this.
ATOL = 2e-6
B, S, H, D_MODEL, D_FF = 3, 6, 2, 8, 16
SIZES = {"num_heads": H, "d_model": D_MODEL, "d_ff": D_FF}
ORACLES = {PostNorm: paper.post_norm, PreNorm: paper.pre_norm}
NORMS = pytest.mark.parametrize("norm", [PostNorm, PreNorm])
IDS = np.array([[5, 6, 7, 8, 0, 0], [5, 6, 7, 8, 9, 5], [5, 0, 0, 0, 0, 0]])
MASK = np.array(padding_mask(IDS))


@pytest.fixture
def x(random):
    return random(B, S, D_MODEL)


@pytest.fixture(scope="module", params=[PostNorm, PreNorm], ids=["post", "pre"])
def encoder(shaken, request):
    """Not to be changed."""
    encoder = Encoder(2, **SIZES, d_k=3, d_v=5, norm=request.param)
    return shaken(np.random.default_rng(1), encoder, np.zeros((B, S, D_MODEL), "float32"))


@NORMS
@pytest.mark.parametrize("widths", [{}, {"d_k": 3, "d_v": 5}], ids=["paper", "free"])
def test_an_encoder_layer_is_the_paper_s(x, widths, norm, randomized, parts):
    layer = randomized(EncoderLayer(**SIZES, **widths, norm=norm), x)
    for mask in (None, MASK, np.array(causal_mask(S))):
        results = {
            kind: paper.encoder_layer(x, parts(layer), H, mask, oracle)
            for kind, oracle in ORACLES.items()
        }
        actual = layer(x, attention_mask=mask)
        np.testing.assert_allclose(actual, results.pop(norm), rtol=0, atol=ATOL)
        [other] = results.values()
        assert np.abs(actual - other).max() > 0.1


def test_the_paper_s_norm_is_the_default(x):
    for layer in (EncoderLayer(**SIZES), Encoder(1, **SIZES).layers[0]):
        assert isinstance(layer.feed_forward_norm, PostNorm)
    for layer in (DecoderLayer(**SIZES), Decoder(1, **SIZES).layers[0]):
        assert isinstance(layer.cross_attention_norm, PostNorm)


def test_an_encoder_is_its_layers_one_after_another_and_pre_norm_s_last_norm(encoder, x, parts):
    norm = type(encoder.layers[0].feed_forward_norm)
    expected = x
    for layer in encoder.layers:
        expected = paper.encoder_layer(expected, parts(layer), H, MASK, ORACLES[norm])
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
    """Training a layer without its Add & Norm dropouts is deterministic; any of them alone is
    not.
    """
    layer = kind(**SIZES, dropout=0.5)
    inputs = (x, random(B, S, D_MODEL))[: len(sublayers) - 1]
    plain = np.array(layer(*inputs))
    for alone in (None, *sublayers):
        for name in sublayers:
            getattr(layer, f"{name}_norm").sublayer_dropout.rate = 0.5 * (name == alone)
        changes = np.abs(layer(*inputs, training=True) - plain).max() > 0.1
        assert changes == (alone is not None)


@pytest.mark.parametrize(
    ("kind", "attentions"),
    [(Encoder, ["self_attention"]), (Decoder, ["self_attention", "cross_attention"])],
)
@pytest.mark.parametrize("num_layers", [1, 3])
def test_the_last_matrix_of_each_sublayer_starts_quieter_by_the_root_of_their_number(
    kind, attentions, num_layers
):
    keras.utils.set_random_seed(0)
    stack = kind(num_layers, num_heads=2, d_model=64, d_ff=96)
    stack(*(np.zeros((1, length, 64), "float32") for length in (2, 3)[: len(attentions)]))
    branches = num_layers * (len(attentions) + 1)
    for layer in stack.layers:
        scaled = [getattr(layer, name).output_kernel for name in attentions]
        scaled.append(layer.feed_forward.outer.kernel)
        whole = (layer.self_attention.query_kernel, layer.feed_forward.inner.kernel)
        for kernels, count in ((scaled, branches), (whole, 1)):
            for kernel in kernels:
                bound = (6 / sum(kernel.shape) / count) ** 0.5
                assert 0.98 * bound < np.abs(kernel.numpy()).max() <= bound
    # Each layer draws numbers of its own.
    kernels = [layer.self_attention.output_kernel.numpy() for layer in stack.layers]
    assert len({kernel.tobytes() for kernel in kernels}) == num_layers


def test_what_every_layer_attends_to_comes_with_what_call_gives(encoder, x):
    output, weights = encoder.with_attention(x, MASK)
    np.testing.assert_allclose(output, encoder(x, attention_mask=MASK), rtol=1e-6, atol=1e-6)
    assert weights.shape == (B, 2, H, S, S)
    np.testing.assert_allclose(np.sum(weights, axis=-1), 1, atol=1e-6)
    assert not np.array(weights)[0, ..., 4:].any()
    first = encoder.layers[0](x, attention_mask=MASK)
    for layer, inputs, ours in zip(
        encoder.layers, (x, first), np.moveaxis(weights, 1, 0), strict=True
    ):
        np.testing.assert_allclose(
            ours, layer.with_attention(inputs, MASK)[1], rtol=1e-6, atol=1e-6
        )
