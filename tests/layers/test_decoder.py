"""Section 3.1: the decoder's layers against the equations in float64; one step at a time gives what
the whole target gives.
"""

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.layers import Decoder, DecoderLayer, causal_mask, padding_mask

# Of one equation float32 gives 1e-6; of a chain of them, which norms stretch on the way, this.
ATOL = 2e-6
B, T, S, H, D_MODEL, D_FF = 2, 5, 6, 2, 8, 16
SIZES = {"num_heads": H, "d_model": D_MODEL, "d_ff": D_FF}
MEMORY_MASK = np.array(padding_mask(np.array([[5, 6, 7, 8, 0, 0], [5, 6, 7, 8, 9, 5]])))


@pytest.fixture
def x(random):
    return random(B, T, D_MODEL)


@pytest.fixture
def memory(random):
    return random(B, S, D_MODEL)


@pytest.fixture
def decoder(randomized, x, memory):
    return randomized(Decoder(2, **SIZES, d_k=3, d_v=5), x, memory)


def stepped(decoder, x, memory, memory_mask):
    """A stepper over all positions of K hypotheses a sentence: (B, K, T, d_model) -> the same
    shape.
    """
    past, cache = decoder.empty_past(x.shape[0] * x.shape[1]), decoder.memory_cache(memory)
    outputs = []
    for t in range(x.shape[2]):
        output, past = decoder.stepper()(x[:, :, t], past, cache, memory_mask)
        outputs.append(np.array(output))
    return np.stack(outputs, axis=2)


@pytest.mark.parametrize("mask", [None, causal_mask(T)], ids=["none", "causal"])
@pytest.mark.parametrize("memory_mask", [None, MEMORY_MASK], ids=["whole memory", "padded memory"])
@pytest.mark.parametrize("widths", [{}, {"d_k": 3, "d_v": 5}], ids=["paper", "free"])
def test_a_decoder_layer_is_the_paper_s(x, memory, mask, memory_mask, widths, randomized, parts):
    layer = randomized(DecoderLayer(**SIZES, **widths), x, memory)
    expected = paper.decoder_layer(
        x, memory, parts(layer), H, None if mask is None else np.array(mask), memory_mask
    )
    np.testing.assert_allclose(
        layer(x, memory, attention_mask=mask, memory_mask=memory_mask), expected, rtol=0, atol=ATOL
    )


def test_a_decoder_is_its_layers_one_after_another_and_causal(decoder, x, memory, parts):
    expected = x
    for layer in decoder.layers:
        expected = paper.decoder_layer(
            expected, memory, parts(layer), H, np.tril(np.ones((T, T), bool)), MEMORY_MASK
        )
    np.testing.assert_allclose(
        decoder(x, memory, memory_mask=MEMORY_MASK), expected, rtol=0, atol=ATOL
    )


def test_later_tokens_change_nothing(decoder, x, memory, random):
    later = np.concatenate([x[:, :3], random(B, 2, D_MODEL)], axis=1)
    np.testing.assert_allclose(
        decoder(later, memory)[:, :3], decoder(x, memory)[:, :3], rtol=0, atol=ATOL
    )
    layer = decoder.layers[0]
    assert (
        np.abs(layer(later, memory)[:, :3] - layer(x, memory)[:, :3]).max() > 0.01
    )  # without the causal mask


def test_padding_of_target_and_source_changes_nothing(decoder, x, memory, random):
    wide_x, wide_memory = (np.concatenate([a, random(B, 3, D_MODEL)], axis=1) for a in (x, memory))
    wide_mask = np.pad(MEMORY_MASK, [(0, 0), (0, 0), (0, 3)])
    expected = decoder(x, memory, memory_mask=MEMORY_MASK)
    np.testing.assert_allclose(
        decoder(wide_x, wide_memory, memory_mask=wide_mask)[:, :T], expected, rtol=0, atol=ATOL
    )
    assert np.abs(decoder(wide_x, wide_memory)[:, :T] - decoder(x, memory)).max() > 0.01


def test_batch_order_changes_nothing(decoder, x, memory):
    out = np.array(decoder(x, memory, memory_mask=MEMORY_MASK))
    turned = decoder(x[::-1], memory[::-1], memory_mask=MEMORY_MASK[::-1])
    np.testing.assert_allclose(turned[::-1], out, rtol=0, atol=ATOL)
    assert np.abs(decoder(x[::-1], memory, memory_mask=MEMORY_MASK)[::-1] - out).max() > 0.01


@pytest.mark.parametrize("hypotheses", [1, 3])
def test_steps_with_a_cache_equal_the_whole_target(decoder, memory, random, hypotheses):
    """K hypotheses with different prefixes share one memory; `call` gets a copy of it for each."""
    x = random(B, hypotheses, T, D_MODEL)
    memories, masks = (np.repeat(a, hypotheses, axis=0) for a in (memory, MEMORY_MASK))
    expected = np.array(decoder(x.reshape(-1, T, D_MODEL), memories, memory_mask=masks)).reshape(
        x.shape
    )
    np.testing.assert_allclose(
        stepped(decoder, x, memory, MEMORY_MASK), expected, rtol=0, atol=ATOL
    )
    assert np.abs(stepped(decoder, x, memory, None) - expected).max() > 0.01


def test_each_hypothesis_continues_its_own_past(decoder, memory, random):
    x, cache = random(B, 3, 2, D_MODEL), decoder.memory_cache(memory)
    _, past = decoder.stepper()(x[:, :, 0], decoder.empty_past(B * 3), cache)
    order = np.array([1, 2, 0, 4, 5, 3])
    reordered = [tuple(keras.ops.take(half, order, axis=0) for half in layer) for layer in past]
    mixed_up, _ = decoder.stepper()(x[:, :, 1], reordered, cache)
    moved_along = stepped(
        decoder,
        np.stack([x.reshape(-1, 2, D_MODEL)[order, 0].reshape(B, 3, D_MODEL), x[:, :, 1]], axis=2),
        memory,
        None,
    )
    np.testing.assert_allclose(mixed_up, moved_along[:, :, 1], rtol=0, atol=ATOL)
    assert np.abs(mixed_up - stepped(decoder, x, memory, None)[:, :, 1]).max() > 0.01


def test_the_cache_has_the_stated_shapes(decoder, memory, random):
    assert [(k.shape, v.shape) for k, v in decoder.memory_cache(memory)] == [
        ((B, H, S, 3), (B, H, S, 5))
    ] * 2
    past = decoder.empty_past(B * 3)
    for t in range(3):
        assert [(k.shape, v.shape) for k, v in past] == [((B * 3, H, t, 3), (B * 3, H, t, 5))] * 2
        output, past = decoder.stepper()(
            random(B, 3, D_MODEL), past, decoder.memory_cache(memory), MEMORY_MASK
        )
        assert output.shape == (B, 3, D_MODEL)


def test_a_memory_of_nothing_but_padding_stays_finite(decoder, x, memory):
    assert np.isfinite(decoder(x, memory, memory_mask=np.zeros((B, 1, S), bool))).all()


def test_dropout_acts_in_training_only(x, memory):
    keras.utils.set_random_seed(0)
    decoder = Decoder(2, **SIZES, dropout=0.5)
    np.testing.assert_array_equal(decoder(x, memory, training=False), decoder(x, memory))
    assert np.abs(decoder(x, memory, training=True) - decoder(x, memory)).max() > 0.1


def test_dropout_stands_on_each_sublayer_s_output_and_nowhere_else(x, memory):
    layer = DecoderLayer(**SIZES, dropout=0.5)
    plain = np.array(layer(x, memory))
    norms = (layer.self_attention_norm, layer.cross_attention_norm, layer.feed_forward_norm)
    for rates in ((0, 0, 0), (0.5, 0, 0), (0, 0.5, 0), (0, 0, 0.5)):
        for norm, rate in zip(norms, rates, strict=True):
            norm.sublayer_dropout.rate = rate
        assert (np.abs(layer(x, memory, training=True) - plain).max() > 0.1) == any(rates)


@pytest.mark.parametrize("layer_type", [DecoderLayer, Decoder])
def test_config_round_trip(layer_type, x, memory, round_trip):
    stack = {"num_layers": 2} if layer_type is Decoder else {}
    layer = layer_type(**stack, **SIZES, d_k=3, d_v=5, dropout=0.3, activation="gelu", name="d")
    np.testing.assert_array_equal(round_trip(layer, x, memory)(x, memory), layer(x, memory))


def test_mixed_bfloat16_reaches_every_sublayer_and_keeps_float32_weights(x, memory, decoder):
    mixed = Decoder(2, **SIZES, d_k=3, d_v=5, dtype="mixed_bfloat16")
    mixed(x, memory)
    mixed.set_weights(decoder.get_weights())
    out = mixed(x, memory, memory_mask=MEMORY_MASK)
    assert {layer.compute_dtype for layer in mixed._flatten_layers()} == {"bfloat16"}
    assert keras.backend.standardize_dtype(out.dtype) == "bfloat16"
    assert {w.dtype for w in mixed.weights} == {"float32"}
    np.testing.assert_allclose(
        keras.ops.cast(out, "float32"), decoder(x, memory, memory_mask=MEMORY_MASK), atol=0.2
    )


def test_under_mixed_bfloat16_the_cache_keeps_its_dtype(x, memory):
    """A loop's state may not change its dtype from turn to turn."""
    decoder = Decoder(1, **SIZES, dtype="mixed_bfloat16")
    decoder(x, memory)
    before = decoder.empty_past(B)
    _, after = decoder.stepper()(x[:, :1].astype("float32"), before, decoder.memory_cache(memory))
    assert before[0][0].dtype == after[0][0].dtype
