"""A decoder without a memory, the stack of a decoder-only model: against torch's own layer with a
causal mask, and one position at a time against the whole.
"""

import numpy as np
import pytest

from keras_transformer.layers import Decoder, PostNorm, PreNorm, PreRmsNorm, causal_mask
from keras_transformer.layers.attention_variants.relative_positions import Rotary
from keras_transformer.layers.scaled_dot_product import SoftmaxHeads

B, T, H, D_MODEL, D_FF = 2, 5, 2, 8, 16
SIZES = {"num_heads": H, "d_model": D_MODEL, "d_ff": D_FF, "has_memory": False}
EPSILON = 1e-3


@pytest.fixture
def x(random):
    return random(B, T, D_MODEL)


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
        1, **SIZES, norm=norm, attention_bias=True, norm_epsilon=EPSILON, activation="gelu"
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
    stack = Decoder(2, **SIZES, norm=norm, attention_bias=bias, heads=heads)
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


def test_the_weights_for_looking_at_are_causal_and_sum_to_one(x, randomized):
    stack = randomized(Decoder(2, **SIZES), x)
    y, (weights, of_memory) = stack.with_attention(x)
    assert of_memory is None
    np.testing.assert_allclose(np.array(y), np.array(stack(x)), rtol=1e-5, atol=1e-6)
    weights = np.array(weights)
    assert weights.shape == (B, 2, H, T, T)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-6)
    assert not np.triu(weights, 1).any()
