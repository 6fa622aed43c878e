"""Section 3.1: the decoder's layers against the equations in float64; one step at a time gives what
the whole target gives.
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
    PreRmsNorm,
    causal_mask,
    padding_mask,
)
from keras_transformer.layers.attention_variants.relative_positions import Rotary
from keras_transformer.layers.linear_maps import UNFAVOURABLE
from keras_transformer.layers.scaled_dot_product import SoftmaxHeads

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


def stepped(decoder, x, memory, memory_mask):
    """A stepper over all positions of K hypotheses a sentence: (B, K, T, d_model) -> the same
    shape.
    """
    stepper = decoder.stepper()
    state = stepper.start(x.shape[0] * x.shape[1])
    cache = decoder.memory_cache(memory)
    outputs = []
    for t in range(x.shape[2]):
        output, state, _ = stepper(x[:, :, t], state, cache, memory_mask)
        outputs.append(np.array(output))
    return np.stack(outputs, axis=2)


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


def test_steps_equal_call_where_matrices_are_filled_up(random, randomized):
    x = random(2, 3, 8)
    memory = random(2, 4, 8)
    decoder = randomized(Decoder(2, num_heads=2, d_model=8, d_ff=UNFAVOURABLE), x, memory)
    np.testing.assert_allclose(
        stepped(decoder, x[:, None], memory, None)[:, 0], decoder(x, memory), rtol=0, atol=1e-5
    )


def test_each_hypothesis_continues_its_own_past(decoder, memory, random):
    x = random(B, 3, 2, D_MODEL)
    cache = decoder.memory_cache(memory)
    stepper = decoder.stepper()
    _, state, _ = stepper(x[:, :, 0], stepper.start(B * 3), cache)
    order = np.array([1, 2, 0, 4, 5, 3])
    reordered = keras.tree.map_structure(lambda part: keras.ops.take(part, order, axis=0), state)
    mixed_up, _, _ = stepper(x[:, :, 1], reordered, cache)
    first = x.reshape(-1, 2, D_MODEL)[order, 0].reshape(B, 3, D_MODEL)
    moved_along = stepped(decoder, np.stack([first, x[:, :, 1]], axis=2), memory, None)
    np.testing.assert_allclose(mixed_up, moved_along[:, :, 1], rtol=0, atol=ATOL)
    assert np.abs(mixed_up - stepped(decoder, x, memory, None)[:, :, 1]).max() > 0.01


def test_the_state_has_the_stated_shapes_and_grows_where_it_says(decoder, memory, random):
    cache = decoder.memory_cache(memory)
    assert [(k.shape, v.shape) for k, v in cache] == [((B, H, S, 3), (B, H, S, 5))] * 2
    stepper = decoder.stepper()
    state = stepper.start(B * 3)
    assert stepper.growing == [((2, 2), ())] * 2
    for t in range(3):
        for (keys, values), fed in state:
            assert (keys.shape, values.shape) == ((B * 3, H, t, 3), (B * 3, H, t, 5))
            assert fed == ()
        output, state, attention = stepper(random(B, 3, D_MODEL), state, cache, MEMORY_MASK)
        assert output.shape == (B, 3, D_MODEL)
        assert attention.shape == (B, 3, S)
        assert attention.dtype == "float32"


def test_a_stepper_tells_what_the_last_layer_s_heads_attend_to(random, randomized):
    x = random(2, 3, 8)
    memory = random(2, 4, 8)
    mask = np.array([[[1, 1, 1, 0]], [[1, 1, 1, 1]]], bool)
    decoder = randomized(Decoder(3, num_heads=2, d_model=8, d_ff=16), x, memory)
    _, (to_target, to_memory) = decoder.with_attention(x, memory, mask)
    assert (to_target.shape, to_memory.shape) == ((2, 3, 2, 3, 3), (2, 3, 2, 3, 4))
    stepper = decoder.stepper()
    state = stepper.start(2)
    cache = decoder.memory_cache(memory)
    for t in range(3):
        _, state, attention = stepper(x[:, t : t + 1], state, cache, mask)
        np.testing.assert_allclose(
            attention[:, 0], np.mean(to_memory[:, -1, :, t], axis=1), rtol=1e-6, atol=1e-6
        )
        assert np.abs(attention[:, 0] - np.mean(to_memory[:, 0, :, t], axis=1)).max() > 1e-3


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


# A decoder without a memory, the stack of a decoder-only model: against torch's own layer with a
# causal mask, and one position at a time against the whole.
WITHOUT_MEMORY = {"num_heads": H, "d_model": D_MODEL, "d_ff": D_FF, "has_memory": False}
EPSILON = 1e-3


def transplanted(ours, theirs):
    """Give torch's `TransformerEncoderLayer` the weights of a layer of ours."""
    torch = pytest.importorskip("torch")
    weights = {one.path.partition("layer_0/")[2]: one.numpy() for one in ours.weights}
    attention = {
        kind: [weights[f"self_attention/{name}_{kind}"] for name in ("query", "key", "value")]
        for kind in ("kernel", "bias")
    }
    arrays = {
        "self_attn.in_proj_weight": np.concatenate(attention["kernel"], axis=1).T,
        "self_attn.in_proj_bias": np.concatenate(attention["bias"]),
        "self_attn.out_proj.weight": weights["self_attention/output_kernel"].T,
        "self_attn.out_proj.bias": weights["self_attention/output_bias"],
        "linear1.weight": weights["feed_forward/inner/kernel"].T,
        "linear1.bias": weights["feed_forward/inner/bias"],
        "linear2.weight": weights["feed_forward/outer/kernel"].T,
        "linear2.bias": weights["feed_forward/outer/bias"],
        "norm1.weight": weights["self_attention_norm/norm/gamma"],
        "norm1.bias": weights["self_attention_norm/norm/beta"],
        "norm2.weight": weights["feed_forward_norm/norm/gamma"],
        "norm2.bias": weights["feed_forward_norm/norm/beta"],
    }
    theirs.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()})
    return theirs


@pytest.mark.parametrize("norm", [PostNorm, PreNorm])
def test_a_layer_with_biases_is_that_of_torch(x, norm, randomized):
    torch = pytest.importorskip("torch")
    stack = Decoder(
        1, **WITHOUT_MEMORY, norm=norm, attention_bias=True, norm_epsilon=EPSILON, activation="gelu"
    )
    randomized(stack, x)
    theirs = torch.nn.TransformerEncoderLayer(
        D_MODEL,
        H,
        D_FF,
        dropout=0.0,
        activation="gelu",
        layer_norm_eps=EPSILON,
        batch_first=True,
        norm_first=norm is PreNorm,
    ).eval()
    mask = torch.nn.Transformer.generate_square_subsequent_mask(T)
    layer = transplanted(stack.layers[0], theirs)
    expected = layer(torch.tensor(np.array(x)), src_mask=mask, is_causal=True)
    actual = stack.layers[0](x, causal=causal_mask(T))
    np.testing.assert_allclose(np.array(actual), expected.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm", [PostNorm, PreNorm, PreRmsNorm])
@pytest.mark.parametrize("bias", [False, True])
def test_steps_with_a_cache_equal_the_whole_sequence(x, norm, bias, randomized):
    heads = SoftmaxHeads(positions=Rotary())
    stack = Decoder(2, **WITHOUT_MEMORY, norm=norm, attention_bias=bias, heads=heads)
    randomized(stack, x)
    stepper = stack.stepper()
    state = stepper.start(B)
    steps = []
    for position in range(T):
        y, state, attention = stepper(x[:, position : position + 1], state)
        steps.append(np.array(y))
        assert attention is None
    np.testing.assert_allclose(
        np.concatenate(steps, axis=1), np.array(stack(x)), rtol=1e-5, atol=2e-6
    )


def test_a_memory_that_is_forgotten_is_told():
    layer = DecoderLayer(2, 8, 16)
    with pytest.raises(ValueError, match=r"Without `memory`.* has_memory=False"):
        layer(np.zeros((1, 3, 8)))
    assert DecoderLayer(2, 8, 16, has_memory=False)(np.zeros((1, 3, 8))).shape == (1, 3, 8)
