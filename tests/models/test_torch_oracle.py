"""The whole encoder-decoder, outputs and gradients, against torch.nn.Transformer with the same
weights.
"""

import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from oracles import paper

from keras_transformer.models import Transformer

torch = pytest.importorskip(
    "torch", reason="install the extra [oracles] to compare with torch.nn.Transformer"
)

V, N, H, D_MODEL, D_FF = 13, 2, 4, 16, 32
SOURCE = np.array([[4, 5, 6, 7, 8, 2], [9, 10, 2, 0, 0, 0], [11, 12, 4, 9, 2, 0]])
TARGET = np.array([[2, 7, 6, 5, 4], [2, 10, 9, 0, 0], [2, 12, 12, 4, 0]])
# The loss's weight of each logit: 0 at padding, and random elsewhere.
COTANGENT = np.random.default_rng(1).normal(size=(*TARGET.shape, V)) * (TARGET != 0)[..., None]


# Torch says that it has no fast path for pre-norm and for other activations.
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
SIZES = {"vocabulary_size": V, "num_layers": N, "d_model": D_MODEL, "d_ff": D_FF, "num_heads": H}
VARIANTS = [("post", "relu"), ("pre", "relu"), ("pre", "gelu"), ("post", "swish")]
ACTIVATIONS = {
    "relu": torch.nn.functional.relu,
    "gelu": torch.nn.functional.gelu,
    "swish": torch.nn.functional.silu,
}


@functools.cache
def ours(norm, activation):
    rng = np.random.default_rng(0)
    model = Transformer(**SIZES, norm=norm, activation=activation, dropout=0.0)
    model.set_weights([rng.normal(w, 0.1) for w in model.get_weights()])
    return model


def attention_arrays(tensors):
    """Torch keeps W^Q, W^K, W^V as one (3 d_model, d_model), and every matrix transposed."""
    yield from (block.T for block in np.split(tensors["in_proj_weight"], 3))
    yield tensors["out_proj.weight"].T


def torch_arrays(module, tensor_of):
    """A torch.nn.Transformer's weights, or their gradients, in our order: part by part, as our
    layers list theirs.
    """

    def sub(prefix, layer):
        return {
            name.removeprefix(prefix): tensor_of(p)
            for name, p in layer.named_parameters()
            if name.startswith(prefix)
        }

    for layer in itertools.chain(module.encoder.layers, module.decoder.layers):
        norms = [list(sub(f"norm{n}.", layer).values()) for n in (1, 2, 3)]
        yield "self_attention", [*attention_arrays(sub("self_attn.", layer))]
        yield "self_attention_norm", norms[0]
        if hasattr(layer, "multihead_attn"):
            yield "cross_attention", [*attention_arrays(sub("multihead_attn.", layer))]
            yield "cross_attention_norm", norms[1]
        inner, outer = sub("linear1.", layer), sub("linear2.", layer)
        yield "feed_forward", [inner["weight"].T, inner["bias"], outer["weight"].T, outer["bias"]]
        yield "feed_forward_norm", norms[2] or norms[1]
    for stack in (module.encoder, module.decoder):
        if stack.norm is not None:
            yield "final_norm", [tensor_of(stack.norm.weight), tensor_of(stack.norm.bias)]


def our_variables(model):
    """Our variables in the same order: (part, variables)."""
    for layer in itertools.chain(model.encoder.layers, model.decoder.layers):
        for part in ("self_attention", "cross_attention", "feed_forward"):
            for name in (part, f"{part}_norm"):
                if hasattr(layer, name):
                    yield name, getattr(layer, name).weights
    for stack in (model.encoder, model.decoder):
        if stack.final_norm.weights:
            yield "final_norm", stack.final_norm.weights


def theirs(model):
    """Torch's Transformer in float64 with our weights and epsilon, without attention biases. Torch
    puts a norm behind each stack in any case; post-norm has none there.
    """
    hp = model.hyperparameters
    module = torch.nn.Transformer(
        D_MODEL,
        H,
        N,
        N,
        D_FF,
        dropout=0.0,
        layer_norm_eps=1e-6,
        batch_first=True,
        dtype=torch.float64,
        norm_first=hp.norm == "pre",
        activation=ACTIVATIONS[hp.activation],
    )
    if hp.norm == "post":
        module.encoder.norm = module.decoder.norm = None
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith(("in_proj_bias", "out_proj.bias")):
                parameter.zero_()
        # The arrays are views of torch's memory, so what is written into them is written into
        # torch's weights.
        views = torch_arrays(module, lambda parameter: parameter.detach().numpy())
        for (part, arrays), (our_part, variables) in zip(views, our_variables(model), strict=True):
            assert part == our_part
            for array, variable in zip(arrays, variables, strict=True):
                array[...] = variable.numpy()
    return module


def torch_logits(module, table):
    """Embedding and projection around torch's stacks. In torch's masks True means "may not"."""

    def embed(ids):
        return table[torch.tensor(ids)] * D_MODEL**0.5 + torch.tensor(
            paper.sinusoidal_positions(range(ids.shape[1]), D_MODEL)
        )

    causal = torch.triu(torch.ones(TARGET.shape[1], TARGET.shape[1], dtype=torch.bool), diagonal=1)
    padding = torch.tensor(SOURCE == 0)
    x = module(
        embed(SOURCE),
        embed(TARGET),
        tgt_mask=causal,
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
        tgt_key_padding_mask=torch.tensor(TARGET == 0),
    )
    return x @ table.T


@pytest.fixture(scope="module", params=VARIANTS, ids="-".join)
def both(request):
    """Of ours and of theirs: (logits, gradient of the table, [(part, gradients)])."""
    model = ours(*request.param)
    with tf.GradientTape() as tape:
        logits = model((SOURCE, TARGET))
        loss = tf.reduce_sum(logits * COTANGENT.astype("float32"))
    parts = [part for part, _ in our_variables(model)]
    table_gradient, *gradients = tape.gradient(
        loss,
        [model.embedding.table.value, *([w.value for w in ws] for _, ws in our_variables(model))],
    )
    table_gradient = tf.convert_to_tensor(table_gradient).numpy()
    our_side = (
        logits.numpy(),
        table_gradient,
        [(part, [g.numpy() for g in gs]) for part, gs in zip(parts, gradients, strict=True)],
    )

    module = theirs(model)
    table = torch.tensor(model.embedding.table.numpy(), dtype=torch.float64, requires_grad=True)
    logits = torch_logits(module, table)
    (logits * torch.tensor(COTANGENT)).sum().backward()
    their_gradients = list(torch_arrays(module, lambda parameter: parameter.grad.numpy()))
    return our_side, (logits.detach().numpy(), table.grad.numpy(), their_gradients)


def deviation(ours, theirs):
    """Largest difference, in units of the largest entry where that is above 1."""
    assert ours.shape == theirs.shape
    return np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())


def test_logits_and_the_gradient_of_the_tied_table_are_torch_s(both):
    real = TARGET != 0
    (ours, our_gradient, _), (theirs, their_gradient, _) = both
    for actual, expected in ((ours[real], theirs[real]), (our_gradient, their_gradient)):
        assert deviation(actual, expected) < 1e-5
        assert np.abs(expected).max() > 1


def test_the_gradient_of_every_other_weight_is_torch_s(both):
    (*_, ours), (*_, theirs) = both
    compared = 0
    for (part, our_gradients), (their_part, their_gradients) in zip(ours, theirs, strict=True):
        assert part == their_part
        for our_gradient, their_gradient in zip(our_gradients, their_gradients, strict=True):
            assert deviation(our_gradient, their_gradient) < 1e-5, part
            assert np.abs(their_gradient).max() > 0.01, part
            compared += our_gradient.size
    attention = 4 * D_MODEL**2
    feed_forward = 2 * D_MODEL * D_FF + D_FF + D_MODEL
    norm = 2 * D_MODEL
    final_norms = 2 if ours[-1][0] == "final_norm" else 0
    assert compared == N * (3 * attention + 2 * feed_forward + 5 * norm) + final_norms * norm
