"""Section 3.1: the decoder's layers against the equations in float64. That one step at a time gives
what the whole target gives is a law of tests/laws/test_models.py.
"""

import itertools

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.layers import (
    Decoder,
    DecoderLayer,
    PostNorm,
    PreNorm,
    causal_mask,
    padding_mask,
)

# Of one equation float32 gives 1e-6; of a chain of them, which norms stretch on the way, this.
ATOL = 2e-6
B, T, S, H, D_MODEL, D_FF = 2, 5, 6, 2, 8, 16
SIZES = {"num_heads": H, "d_model": D_MODEL, "d_ff": D_FF}
ORACLES = {PostNorm: paper.post_norm, PreNorm: paper.pre_norm}
NORMS = pytest.mark.parametrize("norm", [PostNorm, PreNorm])
MEMORY_MASK = np.array(padding_mask(np.array([[5, 6, 7, 8, 0, 0], [5, 6, 7, 8, 9, 5]])))


@pytest.fixture
def x(random):
    return random(B, T, D_MODEL)


@pytest.fixture
def memory(random):
    return random(B, S, D_MODEL)


@pytest.fixture(scope="module", params=[PostNorm, PreNorm], ids=["post", "pre"])
def decoder(shaken, request):
    """Not to be changed."""
    decoder = Decoder(2, **SIZES, d_k=3, d_v=5, norm=request.param)
    inputs = [np.zeros((B, length, D_MODEL), "float32") for length in (T, S)]
    return shaken(np.random.default_rng(1), decoder, *inputs)


@NORMS
@pytest.mark.parametrize("widths", [{}, {"d_k": 3, "d_v": 5}], ids=["paper", "free"])
def test_a_decoder_layer_is_the_paper_s(x, memory, widths, norm, randomized, parts):
    layer = randomized(DecoderLayer(**SIZES, **widths, norm=norm), x, memory)
    masks = itertools.product((None, np.array(causal_mask(T))), (None, MEMORY_MASK))
    for mask, memory_mask in masks:
        results = {
            kind: paper.decoder_layer(x, memory, parts(layer), H, mask, memory_mask, oracle)
            for kind, oracle in ORACLES.items()
        }
        actual = layer(x, memory, attention_mask=mask, memory_mask=memory_mask)
        np.testing.assert_allclose(actual, results.pop(norm), rtol=0, atol=ATOL)
        [other] = results.values()
        assert np.abs(actual - other).max() > 0.1


def test_a_decoder_is_its_layers_one_after_another_and_causal(decoder, x, memory, parts):
    norm = type(decoder.layers[0].feed_forward_norm)
    causal = np.tril(np.ones((T, T), bool))
    expected = x
    for layer in decoder.layers:
        expected = paper.decoder_layer(
            expected, memory, parts(layer), H, causal, MEMORY_MASK, ORACLES[norm]
        )
    if norm is PreNorm:
        expected = paper.layer_norm(expected, *decoder.final_norm.get_weights())
    np.testing.assert_allclose(
        decoder(x, memory, memory_mask=MEMORY_MASK), expected, rtol=0, atol=ATOL
    )


def test_attention_weights_are_shares_of_what_may_be_seen(decoder, x, memory):
    output, weights = decoder.with_attention(x, memory, MEMORY_MASK)
    to_target, to_memory = (np.array(part) for part in weights)
    np.testing.assert_allclose(
        output, decoder(x, memory, memory_mask=MEMORY_MASK), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(to_target.sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(to_memory.sum(-1), 1, atol=1e-6)
    assert not to_target[..., ~np.array(causal_mask(T))[0]].any()
    assert not to_memory[0, ..., 4:].any()
    assert to_memory[1].all()
    # The second layer's, from what the first one gives.
    mask = causal_mask(T)
    first = decoder.layers[0](x, memory, attention_mask=mask, memory_mask=MEMORY_MASK)
    _, expected = decoder.layers[1].with_attention(first, memory, mask, MEMORY_MASK)
    np.testing.assert_allclose(to_target[:, 1], expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(to_memory[:, 1], expected[1], rtol=1e-6, atol=1e-6)


@NORMS
def test_under_mixed_bfloat16_the_state_keeps_its_dtype(x, memory, norm):
    """A loop's state may not change its dtype from turn to turn."""
    decoder = Decoder(1, **SIZES, norm=norm, dtype="mixed_bfloat16")
    decoder(x, memory)
    stepper = decoder.stepper()
    before = stepper.start(B)
    first = x[:, :1].astype("float32")
    _, after, _ = stepper(first, before, decoder.memory_cache(memory))
    types = [part.dtype for part in keras.tree.flatten(before)]
    assert types == [part.dtype for part in keras.tree.flatten(after)]
    assert [keras.backend.standardize_dtype(dtype) for dtype in types] == ["bfloat16"] * 2


def test_a_memory_that_is_forgotten_or_not_attended_to_is_told():
    layer = DecoderLayer(2, 8, 16)
    # Keras builds the layers of a model once more where that failed.
    for _ in range(2):
        with pytest.raises(ValueError, match=r"Without `memory`.* has_memory=False"):
            layer(np.zeros((1, 3, 8)))
    alone = Decoder(1, 2, 8, 16, has_memory=False)
    with pytest.raises(ValueError, match=r"and with it True\. Received: has_memory=False"):
        alone(np.zeros((1, 3, 8)), np.zeros((1, 3, 8)))
    assert alone(np.zeros((1, 3, 8))).shape == (1, 3, 8)
