"""Section 3.2: against the equation in float64, against Keras' own layer, and what masks may do."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import paper
from tensorflow.python.eager import context

from keras_transformer.layers import (
    AttentionHeads,
    MultiHeadAttention,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from keras_transformer.models import Transformer

B, T, S, H, D_MODEL = 2, 5, 7, 4, 16
SOME = np.random.default_rng(1).random((B, T, S)) < 0.6
MASKS = {
    "none": None,
    "random": SOME,
    "keys": SOME[:, :1],
    "first key": np.eye(1, S, dtype=bool)[None],
}


@pytest.fixture
def attention(random, randomized):
    """Four heads of d_k = 3 and d_v = 5, neither of them d_model / h."""
    return randomized(
        MultiHeadAttention(H, D_MODEL, d_k=3, d_v=5),
        random(B, T, D_MODEL),
        random(B, S, D_MODEL),
        random(B, S, D_MODEL),
    )


@pytest.fixture
def qkv(random):
    return random(B, T, D_MODEL), random(B, S, D_MODEL), random(B, S, D_MODEL)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("heads", [(), (H,)], ids=["one head", "heads"])
def test_scaled_dot_product_attention_is_equation_1(random, mask, heads):
    query, key, value = random(B, *heads, T, 3), random(B, *heads, S, 3), random(B, *heads, S, 5)
    mask = mask if mask is None or not heads else mask[:, None]
    expected = paper.scaled_dot_product_attention(query, key, value, mask)
    actual, _ = scaled_dot_product_attention(query, key, value, mask)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_multi_head_attention_is_the_paper_s(attention, qkv, mask):
    expected = paper.multi_head_attention(*qkv, *attention.get_weights(), num_heads=H, mask=mask)
    actual = attention(*qkv, attention_mask=mask)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("mask", [None, SOME, SOME[:, :1]], ids=["none", "random", "keys"])
def test_multi_head_attention_is_that_of_keras(attention, qkv, mask):
    # Where everything is masked Keras averages the values.
    mask = mask if mask is None else mask | (np.arange(S) == 0)
    theirs = keras.layers.MultiHeadAttention(
        H, key_dim=3, value_dim=5, use_bias=False, output_shape=D_MODEL
    )
    query, key, value = qkv
    theirs.build(query.shape, value.shape, key.shape)
    both = zip(attention.get_weights(), theirs.weights, strict=True)
    theirs.set_weights([ours.reshape(weight.shape) for ours, weight in both])
    expected = theirs(query=query, key=key, value=value, attention_mask=mask)
    np.testing.assert_allclose(attention(*qkv, attention_mask=mask), expected, rtol=0, atol=2e-6)


def test_a_fully_masked_row_gives_zeros_and_its_gradient_is_finite(random):
    query, key, value = (tf.constant(random(1, 2, 3)) for _ in range(3))
    with tf.GradientTape() as tape:
        tape.watch((query, key, value))
        out, _ = scaled_dot_product_attention(
            query, key, value, np.array([[[False, False], [True, False]]])
        )
    assert (out[0, 0].numpy() == 0).all()
    assert (out[0, 1].numpy() == value[0, 0].numpy()).all()
    for gradient in tape.gradient(out, (query, key, value)):
        assert np.isfinite(gradient).all()


def test_huge_scores_stay_finite(random):
    out, _ = scaled_dot_product_attention(
        1e4 * random(B, T, 3), 1e4 * random(B, S, 3), random(B, S, 3), SOME
    )
    assert np.isfinite(out).all()


def test_a_stepper_has_the_weights_of_the_time_when_it_was_made(attention, random):
    x = random(B, D_MODEL)
    stepper = attention.stepper()
    before, _ = stepper(x, stepper.start(B))
    attention.output_kernel.assign(2 * attention.output_kernel)
    np.testing.assert_array_equal(stepper(x, stepper.start(B))[0], before)
    later = attention.stepper()
    np.testing.assert_allclose(later(x, later.start(B))[0], 2 * before, rtol=1e-5)


@pytest.mark.parametrize(
    ("d_k", "d_v", "expected"),
    [(None, None, (4, 4)), (3, None, (3, 4)), (None, 5, (4, 5)), (3, 5, (3, 5))],
)
def test_widths_of_a_head_default_to_the_paper_s(d_k, d_v, expected, qkv):
    attention = MultiHeadAttention(H, D_MODEL, d_k, d_v)
    assert attention(*qkv).shape == (B, T, D_MODEL)
    assert (attention.d_k, attention.d_v) == expected
    assert attention.count_params() == 2 * D_MODEL * H * sum(expected)


def test_heads_that_do_not_divide_d_model_are_refused_with_a_remedy_that_works():
    for h, d, remedy in ((8, 500, 504), (3, 8, 9)):
        rest = rf"d_model={d}, num_heads={h}\. Try d_model={remedy}, or pass `d_k` and"
        with pytest.raises(ValueError, match=rf"`d_model`.*`num_heads`.*{rest}"):
            MultiHeadAttention(h, d)
        MultiHeadAttention(h, remedy)
    with pytest.raises(ValueError, match="`d_v`"):
        MultiHeadAttention(8, 500, d_k=64)
    MultiHeadAttention(8, 500, d_k=64, d_v=64)


@pytest.mark.parametrize("shape", [(B, S), (B, 1, S - 1), (B + 1, 1, S), (B, H, T, S), (S,)])
def test_a_mask_of_another_shape_is_refused_with_the_remedy(attention, qkv, shape):
    words = f"`attention_mask` must broadcast to (B, T, S) = {(B, T, S)}. Received: shape {shape}. "
    with pytest.raises(ValueError, match=re.escape(words)):
        attention(*qkv, attention_mask=np.ones(shape, bool))


@pytest.mark.parametrize(
    ("name", "mask", "words"),
    [
        ("attention_mask", np.ones((B, 1, S), "float32"), "must be booleans.* Pass mask > 0 if 1"),
        ("attention_mask", np.zeros((B, T, S)), "must be booleans.* or mask == 0 if 0 "),
        ("causal", True, r"must broadcast .* shape \(\)\. Pass causal_mask\(T\)"),
        ("causal", causal_mask(T), r"must .* shape \(1, 5, 5\)\. .* or no memory\."),
    ],
)
def test_what_is_no_mask_of_these_inputs_is_refused(attention, qkv, name, mask, words):
    """A mask to be added was read the wrong way round, without an error."""
    for call in (attention, attention.with_attention):
        with pytest.raises(ValueError, match=f"`{name}` {words}"):
            call(*qkv, **{name: mask})


@pytest.mark.parametrize(
    "shapes",
    [
        ((B, T), (1, S), (1, S)),
        ((1, T), (B, S), (B, S)),
        ((B, T), (B, S), (1, S)),
        ((B, T), (B, S), (B, T)),
        ((B, T), (S,), (S,)),
    ],
    ids=str,
)
def test_inputs_that_do_not_fit_together_are_refused(attention, shapes):
    """A memory of one row was every row's."""
    inputs = [np.zeros((*shape, D_MODEL), "float32") for shape in shapes]
    received = ", ".join(str(x.shape) for x in inputs)
    words = rf"`query`, `key` and `value` must be .* Received: {re.escape(received)}\. .*repeat\("
    for call in (attention, attention.with_attention):
        with pytest.raises(ValueError, match=words):
            call(*inputs)


def test_masks_join_with_and_and_broadcast_over_the_batch():
    ids = np.array([[5, 6, 0], [7, 8, 9]])
    joined = np.array(padding_mask(ids) & causal_mask(3))
    assert joined.shape == (2, 3, 3)
    expected = [[True, False, False], [True, True, False], [True, True, False]]
    np.testing.assert_array_equal(joined[0], expected)
    np.testing.assert_array_equal(joined[1], np.tril(np.ones((3, 3), bool)))


# The operations of attention in a graph that TensorFlow has optimized for inference.
SOURCE = np.arange(2, 12, dtype="int32").reshape(2, 5)
TARGET = np.arange(2, 16, dtype="int32").reshape(2, 7)


def test_scores_are_computed_by_an_unfused_product():
    """The product of oneDNN that is fused with a scale and a sum is slow reference code."""
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2}
    model = Transformer(vocabulary_size=20, **sizes)
    forward = tf.function(lambda source, target: model([source, target], training=False))
    context.context().enable_graph_collection()
    try:
        forward(tf.constant(SOURCE), tf.constant(TARGET))
        collected = context.context().export_run_metadata()
    finally:
        context.context().disable_graph_collection()
    graphs = [graph for whole in collected.function_graphs for graph in whole.partition_graphs]
    kinds = {node.op for graph in graphs for node in graph.node}
    assert [kind for kind in kinds if kind.endswith("BatchMatMulV2")]
    assert not [kind for kind in kinds if "FusedBatchMatMul" in kind]


class Uniform(AttentionHeads):
    """Custom heads of a class that is not registered."""

    def __init__(self, share=1.0, **kwargs):
        super().__init__(**kwargs)
        self.share = share

    def with_weights(self, query, key, value, masks):
        weights = keras.ops.ones((*query.shape[:3], key.shape[2])) * self.share / key.shape[2]
        return keras.ops.matmul(weights, value), weights


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_heads_need_no_registered_class_until_they_are_loaded(qkv, tmp_path):
    attention = MultiHeadAttention(H, D_MODEL, heads=Uniform(0.5))
    assert attention.heads.share == 0.5
    expected = np.array(attention(*qkv))
    np.testing.assert_allclose(expected, np.broadcast_to(expected[:, :1], expected.shape), 1e-5)
    inputs = [keras.Input(array.shape[1:]) for array in qkv]
    model = keras.Model(inputs, attention(*inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", custom_objects={"Uniform": Uniform})
    np.testing.assert_array_equal(loaded(list(qkv)), expected)
    with pytest.raises(ValueError, match=r"`heads` must be an object .* register_keras_serializa"):
        MultiHeadAttention(H, D_MODEL, heads=attention.get_config()["heads"])
