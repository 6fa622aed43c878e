"""What may stand in the place of section 3.2.1's attention: each against its paper's formula in
float64, and the laws that hold for all of them.
"""

import collections
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import attentions, paper

from keras_transformer.layers import (
    Masks,
    MultiHeadAttention,
    causal_mask,
    scaled_dot_product_attention,
)
from keras_transformer.layers.attention_variants import linear_cost as linear
from keras_transformer.layers.attention_variants.linear_cost import LinearHeads, LowRankHeads
from keras_transformer.layers.attention_variants.relative_positions import (
    LinearBias,
    RelativeBias,
    RelativeKeysAndValues,
    Rotary,
)
from keras_transformer.layers.attention_variants.restricted import LocalHeads, SparseHeads
from keras_transformer.layers.scaled_dot_product import Additive, DotProduct, SoftmaxHeads
from keras_transformer.layers.tensors import distances

B, T, H, D_MODEL, D_K, D_V = 2, 8, 2, 8, 4, 3
LENGTHS = (8, 5)
REAL = np.arange(T) < np.array(LENGTHS)[:, None]
PADDING = REAL[:, None]
CAUSAL = np.array(causal_mask(T))
NEAR = attentions.near(T, 3)
STRIDED = attentions.strided(T, 2)
BUCKETS = {"num_buckets": 8, "max_distance": 9}


def plain(query, key, value, may, weights, number):
    return attentions.plain(query, key, value, may)


def of_heads(formula, **more):
    """A formula whose weights are those of all heads, or that has none."""
    return lambda query, key, value, may, weights, number: formula(
        query, key, value, may, *weights, **more
    )


def additive(query, key, value, may, weights, number):
    return attentions.plain(query, key, value, may, attentions.additive(weights[0][number]))


def bias(bidirectional):
    def formula(query, key, value, may, weights, number):
        of_head = weights[0][number]
        return attentions.with_bias(query, key, value, may, of_head, bidirectional, **BUCKETS)

    return formula


def alibi(query, key, value, may, weights, number):
    return attentions.alibi(query, key, value, may, slope=2 ** (-8 * (number + 1) / H))


def within(pattern, formula=plain):
    return lambda query, key, value, may, *more: formula(query, key, value, may & pattern, *more)


unscaled = of_heads(attentions.plain, similarity=attentions.unscaled)
shaw = of_heads(attentions.shaw, clip=2)
rotary = of_heads(attentions.rotary)
# Each variant and the formula of one of its heads.
EITHER = {
    "default": (SoftmaxHeads(), plain),
    "dot_product": (SoftmaxHeads(DotProduct()), unscaled),
    "additive": (SoftmaxHeads(Additive()), additive),
    "relative": (SoftmaxHeads(positions=RelativeBias(True, **BUCKETS)), bias(True)),
    "relative, causal": (SoftmaxHeads(positions=RelativeBias(False, **BUCKETS)), bias(False)),
    "alibi": (SoftmaxHeads(positions=LinearBias()), alibi),
    "shaw": (SoftmaxHeads(positions=RelativeKeysAndValues(2)), shaw),
    "rotary": (SoftmaxHeads(positions=Rotary()), rotary),
    "local": (LocalHeads(3), within(NEAR)),
    "local relative": (
        LocalHeads(3, positions=RelativeBias(True, **BUCKETS)),
        within(NEAR, bias(True)),
    ),
    "local shaw": (LocalHeads(3, positions=RelativeKeysAndValues(2)), within(NEAR, shaw)),
    "local rotary": (LocalHeads(3, positions=Rotary()), within(NEAR, rotary)),
    "sparse": (SparseHeads(2), within(STRIDED)),
    "sparse rotary": (SparseHeads(2, positions=Rotary()), within(STRIDED, rotary)),
    "sparse relative": (
        SparseHeads(2, positions=RelativeBias(True, **BUCKETS)),
        within(STRIDED, bias(True)),
    ),
    "sparse shaw": (SparseHeads(2, positions=RelativeKeysAndValues(2)), within(STRIDED, shaw)),
    "linear": (LinearHeads(), of_heads(attentions.linear)),
}
ALL = {**EITHER, "low_rank": (LowRankHeads(4, max_positions=6), of_heads(attentions.low_rank))}
# Without those that combine two others.
SINGLE = [name for name in ALL if " " not in name]


@pytest.fixture
def x():
    return np.random.default_rng(0).normal(size=(B, T, D_MODEL)).astype("float32")


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    """Shorten the blocks of linear attention, so that these sequences span several."""
    monkeypatch.setattr(linear, "BLOCK", 4)


@functools.cache
def attention(name):
    """Shared: tests must not change it."""
    keras.utils.set_random_seed(0)
    layer = MultiHeadAttention(H, D_MODEL, D_K, D_V, heads=ALL[name][0])
    layer.build(*[(B, T, D_MODEL)] * 3)
    # Larger than at the start, so that positions matter.
    layer.heads.set_weights([3 * weight for weight in layer.heads.get_weights()])
    return layer


def expected(layer, formula, x, may):
    """The formula of each head and sentence, between the four matrices."""
    x = x.astype("float64")
    query, key, value, output = (
        np.asarray(w, "float64")
        for w in (layer.query_kernel, layer.key_kernel, layer.value_kernel, layer.output_kernel)
    )
    weights = [weight.astype("float64") for weight in layer.heads.get_weights()]
    heads = [
        np.stack(
            [
                formula(row @ wq, row @ wk, row @ wv, allowed, weights, number)
                for row, allowed in zip(x, np.broadcast_to(may, (B, T, T)), strict=True)
            ]
        )
        for number, (wq, wk, wv) in enumerate(
            zip(*(np.split(w, H, axis=1) for w in (query, key, value)), strict=True)
        )
    ]
    return np.concatenate(heads, axis=-1) @ output


@pytest.mark.parametrize("name", ALL)
def test_whole_sequences_are_the_formula_s(x, name):
    layer = attention(name)
    formula = ALL[name][1]
    actual = np.array(layer(x, x, x, attention_mask=PADDING))
    oracle = expected(layer, formula, x, PADDING)
    np.testing.assert_allclose(actual[REAL], oracle[REAL], rtol=0, atol=5e-6)
    for mask in (PADDING.astype("int32"), PADDING.tolist()):
        np.testing.assert_array_equal(layer(x, x, x, attention_mask=mask), actual)
    paper = expected(layer, plain, x, PADDING)
    assert (np.abs(actual - paper)[REAL].max() > 0.01) == (name != "default")


@pytest.mark.parametrize("name", EITHER)
def test_causal_sequences_are_the_formula_s(x, name):
    layer = attention(name)
    oracle = expected(layer, EITHER[name][1], x, CAUSAL)
    np.testing.assert_allclose(layer(x, x, x, causal=CAUSAL), oracle, rtol=0, atol=5e-6)
    both = np.array(layer(x, x, x, attention_mask=PADDING, causal=CAUSAL))
    oracle = expected(layer, EITHER[name][1], x, PADDING & CAUSAL)
    np.testing.assert_allclose(both[REAL], oracle[REAL], rtol=0, atol=5e-6)


@pytest.mark.parametrize("name", EITHER)
def test_a_stepper_gives_what_whole_causal_sequences_give(x, name):
    layer = attention(name)
    whole = np.array(layer(x, x, x, causal=CAUSAL))
    stepper = layer.stepper()
    state = stepper.start(B)
    sizes = []
    for t in range(T):
        y, state = stepper(x[:, t], state)
        np.testing.assert_allclose(y, whole[:, t], rtol=0, atol=5e-6)
        sizes.append([tuple(part.shape) for part in state])
    # Which axis of the state grows, as the stepper declares.
    for first, last, axis in zip(sizes[0], sizes[-1], stepper.growing, strict=True):
        assert {place for place in range(4) if first[place] != last[place]} == {axis} - {-1}
    lengths = {"linear": [D_K] * T}.get(name, list(range(1, T + 1)))
    if name.startswith("local"):
        lengths = [min(t, 3 + 1) for t in range(1, T + 1)]
    assert [shapes[0][2] for shapes in sizes] == lengths


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("causal", [None, CAUSAL], ids=["both ways", "causal"])
def test_with_attention_gives_the_output_of_call_and_its_weights(x, name, causal):
    if name == "low_rank" and causal is not None:
        pytest.skip("a decoder has none")
    layer = attention(name)
    output, weights = layer.with_attention(x, x, x, PADDING, causal)
    actual = layer(x, x, x, attention_mask=PADDING, causal=causal)
    np.testing.assert_allclose(output[0], actual[0], rtol=0, atol=5e-6)
    assert weights.shape == (B, H, T, T)
    heads_shape = layer.heads.compute_output_shape(*[(B, H, T, D_K)] * 2, (B, H, T, D_V))
    assert heads_shape == (B, H, T, D_V)
    assert not np.array(weights)[1, ..., LENGTHS[1] :].any()
    if causal is not None:
        assert not np.array(weights)[..., ~CAUSAL[0]].any()
    if name != "low_rank":
        np.testing.assert_allclose(np.sum(weights, -1)[0], 1, rtol=1e-6, atol=1e-6)
    _, values = layer.keys_and_values(x, x)
    heads = np.einsum("bhts,bhsd->bthd", weights, values).reshape(B, T, -1)
    # With Shaw's positions, values depend on distances too.
    is_mean = np.allclose(heads @ layer.output_kernel.numpy(), output, rtol=0, atol=5e-6)
    assert is_mean == ("shaw" not in name)


@pytest.mark.parametrize("name", ["default", "dot_product", "additive"])
def test_a_memory_stepper_gives_what_whole_sequences_give(x, random, name):
    layer = attention(name)
    queries = random(B, 3, D_MODEL)
    whole, expected_weights = layer.with_attention(queries, x, x, PADDING)
    stepper = layer.memory_stepper()
    cache = layer.keys_and_values(x, x)
    y, weights = stepper(queries.reshape(-1, D_MODEL), cache, PADDING)
    np.testing.assert_allclose(np.reshape(y, whole.shape), whole, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-6, atol=1e-6)
    # A control: the memory of another sentence.
    turned, _ = stepper(queries[::-1].reshape(-1, D_MODEL), cache, PADDING)
    assert np.abs(np.reshape(turned, whole.shape)[::-1] - whole).max() > 0.1


def gradients(tape, out, sources):
    derivatives = tape.gradient(out, sources, unconnected_gradients="zero")
    return [tf.convert_to_tensor(gradient) for gradient in derivatives]


@pytest.mark.parametrize("name", SINGLE)
def test_nothing_but_padding_stays_finite_and_so_does_the_gradient(x, name):
    layer = attention(name)
    inputs = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        out = layer(inputs, inputs, inputs, attention_mask=np.zeros((B, 1, T), bool))
    assert np.isfinite(out).all()
    if name != "low_rank":
        assert not np.array(out).any()
    sources = [inputs, *(variable.value for variable in layer.trainable_variables)]
    assert all(np.isfinite(gradient).all() for gradient in gradients(tape, out, sources))


def test_each_layer_makes_heads_of_its_own(x):
    prototype = SoftmaxHeads(Additive(), dropout=0.1)
    first, second = (MultiHeadAttention(H, D_MODEL, heads=prototype) for _ in range(2))
    for layer in (first, second):
        layer(x, x, x)
    assert first.heads is not second.heads
    assert not prototype.built
    vectors = [layer.heads.similarity.vector for layer in (first, second)]
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01
    assert [layer.heads.weights_dropout.rate for layer in (first, second)] == [0.1, 0.1]


def operations(attend):
    """The types of a graph's operations, where only h, d_k and d_v are known."""
    specs = [tf.TensorSpec([None, H, None, width]) for width in (D_K, D_K, D_V)]
    graph = tf.function(attend, input_signature=specs, autograph=False)
    nodes = graph.get_concrete_function().graph.get_operations()
    # Keras names the output of a layer by an Identity.
    return collections.Counter(node.type for node in nodes if node.type not in ("Identity", "NoOp"))


def test_softmax_heads_add_no_operation_to_the_paper_s_attention():
    def of(heads):
        heads.build(*[(None, H, None, width) for width in (D_K, D_K, D_V)])
        return operations(lambda q, k, v: heads(q, k, v))

    paper = operations(scaled_dot_product_attention)
    assert of(SoftmaxHeads()) == paper
    assert of(SoftmaxHeads(positions=Rotary())).total() > paper.total()  # a control


# Section 4: attention restricted to a neighbourhood, or to that and each column, is the masked full
# one, computed in blocks.
D = 4
RESTRICTED = pytest.mark.parametrize(
    ("kind", "pattern"),
    [(LocalHeads, attentions.near), (SparseHeads, attentions.strided)],
    ids=["local", "sparse"],
)


def built(heads):
    heads.build(*[(None, 2, None, D)] * 3)
    return heads


@RESTRICTED
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("length", "radius"), [(1, 1), (1, 5), (5, 5), (6, 5), (10, 5), (11, 5), (17, 4), (9, 1)]
)
def test_blocks_give_what_masked_attention_gives(kind, pattern, length, radius, causal, random):
    q, k, v = (random(2, 2, length, D) for _ in range(3))
    padding = np.arange(length) < np.array([[length], [max(1, length - 2)]])
    after = causal_mask(length) if causal else None
    masks = Masks(padding[:, None], after)
    heads = built(kind(radius, positions=RelativeBias(not causal)))
    full = SoftmaxHeads(positions=heads.positions)
    built(full).set_weights(heads.get_weights())
    allowed = pattern(length, radius)[None]
    expected = full(q, k, v, masks=Masks(padding[:, None] & allowed, after))
    actual = heads(q, k, v, masks=masks)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)
    if not allowed.all():
        assert np.abs(actual - full(q, k, v, masks=masks)).max() > 0.01


@RESTRICTED
@pytest.mark.parametrize("compiled", [False, True], ids=["graph", "XLA"])
def test_blocks_of_unknown_lengths_have_the_masked_gradients(kind, pattern, compiled, random):
    heads = built(kind(3, positions=RelativeKeysAndValues(4)))
    full = built(SoftmaxHeads(positions=heads.positions))
    full.set_weights(heads.get_weights())

    def derived(heads, mask, *inputs):
        weights = [weight.value for weight in heads.weights]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            masks = Masks(mask, causal_mask(tf.shape(mask)[-1]))
            loss = tf.reduce_sum(heads(*inputs, masks=masks) ** 3)
        return tape.gradient(loss, [*inputs, *weights])

    specs = [tf.TensorSpec([None, 1, None], tf.bool), *[tf.TensorSpec([None, 2, None, D])] * 3]
    blocks = tf.function(
        functools.partial(derived, heads), input_signature=specs, jit_compile=compiled
    )
    # XLA compiles each shape anew, for a second.
    shapes = ((2, 11), (0, 5)) if compiled else ((2, 11), (1, 2), (3, 6), (0, 5))
    for batch, length in shapes:
        inputs = [tf.constant(random(batch, 2, length, D)) for _ in range(3)]
        padding = np.broadcast_to(np.arange(length) < max(1, length - 2), (batch, 1, length))
        expected = derived(full, tf.constant(padding & pattern(length, 3)), *inputs)
        for actual, gradient in zip(blocks(padding, *inputs), expected, strict=True):
            np.testing.assert_allclose(actual, gradient, rtol=1e-4, atol=1e-5)


@RESTRICTED
@pytest.mark.parametrize("causal", [False, True])
def test_one_softmax_has_each_key_once(kind, pattern, causal, random):
    """Dropout takes all weights of a query: as many as the pattern has keys, and their sum is 1."""
    length = 23
    heads = built(kind(4))
    rows = []
    heads.weights_dropout = lambda weights: rows.append(np.array(weights)) or weights
    q, k, v = (random(1, 2, length, D) for _ in range(3))
    heads(q, k, v, masks=Masks(causal=causal_mask(length) if causal else None))
    [weights] = rows
    # (n, h, R, keys).
    by_query = np.moveaxis(weights, 1, 0).reshape(2, -1, weights.shape[-1])[:, :length]
    np.testing.assert_allclose(by_query.sum(-1), 1, rtol=1e-5)
    allowed = pattern(length, 4) & (np.array(causal_mask(length)[0]) if causal else True)
    np.testing.assert_array_equal((by_query > 0).sum(-1), [allowed.sum(-1)] * 2)


@pytest.mark.parametrize(("kind", "exponent"), [(LocalHeads, 1), (SparseHeads, 1.5)])
def test_no_tensor_of_a_graph_grows_with_the_square_of_the_length(kind, exponent):
    def largest(heads, length):
        built(heads)
        specs = [tf.TensorSpec([1, 2, length, D])] * 3
        graph = tf.function(lambda *x: heads(*x), input_signature=specs).get_concrete_function()
        outputs = [out for operation in graph.graph.get_operations() for out in operation.outputs]
        return max(out.shape.num_elements() for out in outputs)

    def growth(heads_for):
        return np.log(largest(heads_for(1024), 1024) / largest(heads_for(256), 256)) / np.log(4)

    assert growth(lambda n: kind(16 if kind is LocalHeads else round(n**0.5))) <= exponent + 0.01
    assert growth(lambda n: SoftmaxHeads()) == pytest.approx(2)  # a control


def test_what_blocks_and_projected_keys_cannot_mask_is_refused(random):
    x = random(1, 2, 6, D)
    for heads in (LocalHeads(2), SparseHeads(2), LowRankHeads(2)):
        with pytest.raises(ValueError, match=r"of shape \(B, 1, S\).*shape \(1, 6, 6\)"):
            built(heads)(x, x, x, masks=Masks(np.ones((1, 6, 6), bool)))
    # A shorter memory of as many blocks must not pass for part of the sequence.
    memory = x[:, :, 1:]
    unknown = [tf.TensorSpec((None, 2, None, D))] * 3
    causal = Masks(causal=causal_mask(6))
    for heads in map(built, (LocalHeads(2), SparseHeads(2), LinearHeads())):
        with pytest.raises(ValueError, match=r"of one length.*Received: 6 and 5\. Give"):
            heads(x, memory, memory, causal)
        in_graph = tf.function(lambda *x, of=heads: of(*x, causal), input_signature=unknown)
        in_graph(x, x, x)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Input to reshape"):
            in_graph(x, memory, memory)
    with pytest.raises(ValueError, match="`causal` must be None"):
        built(LowRankHeads(2))(x, x, x, masks=Masks(causal=causal_mask(6)))
    with pytest.raises(NotImplementedError):
        built(LowRankHeads(2)).stepper()


# Positions that self-attention itself knows: buckets, clipped distances and rotations.
@pytest.mark.parametrize(("queries", "keys", "following"), [(4, 4, 0), (1, 5, 0), (3, 9, 3)])
def test_distances_are_those_of_keys_behind_queries(queries, keys, following):
    actual = np.array(distances(queries, keys, following))
    last = keys - 1 - following
    for t in range(queries):
        for s in range(keys):
            assert actual[t, s] == s - (last - (queries - 1 - t))


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (8, 9), (16, 100)])
def test_buckets_are_those_of_t5(bidirectional, num_buckets, max_distance):
    layer = RelativeBias(bidirectional, num_buckets, max_distance)
    far = np.arange(-300, 301)
    expected = [
        attentions.t5_bucket(int(distance), bidirectional, num_buckets, max_distance)
        for distance in far
    ]
    np.testing.assert_array_equal(layer.buckets(far), expected)
    used = set(expected)
    assert used == set(range(num_buckets)) - ({num_buckets // 2} if bidirectional else set())


def test_shaw_s_default_is_the_authors_clipping_distance():
    layer = RelativeKeysAndValues()
    layer.build((None, 2, None, 6), (None, 2, None, 5))
    assert [tuple(weight.shape) for weight in layer.weights] == [(33, 6), (33, 5)]


def test_rotations_are_the_matrices_of_the_paper_and_keep_lengths(random):
    x = random(2, 3, 5, 8)
    turned = np.array(Rotary().placed(x))
    expected = np.stack([x[:, :, m] @ attentions.rotation(m, 8).T for m in range(5)], axis=2)
    np.testing.assert_allclose(turned, expected, rtol=1e-6, atol=1e-6)
    lengths = np.linalg.norm(turned, axis=-1)
    np.testing.assert_allclose(lengths, np.linalg.norm(x, axis=-1), rtol=1e-5)
    later = np.array(Rotary().placed(x[:, :, 3:], after=x[:, :, :3]))
    np.testing.assert_allclose(later, turned[:, :, 3:], rtol=1e-6, atol=1e-6)
    assert np.abs(Rotary().placed(x[:, :, 3:]) - later).max() > 0.1


def test_rotations_in_bfloat16_tell_position_256_from_257(random):
    signal = keras.ops.ones((1, 1, 2, 4), dtype="bfloat16")
    before = keras.ops.zeros((1, 1, 256, 4), dtype="bfloat16")
    turned = keras.ops.convert_to_numpy(
        keras.ops.cast(Rotary(dtype="mixed_bfloat16").placed(signal, after=before), "float32")
    )[0, 0]
    angles = paper.sinusoidal_positions([256, 257], 4)
    expected = angles[:, 1::2] - angles[:, 0::2]
    np.testing.assert_allclose(turned[:, 0::2], expected, atol=2**-7)
    assert np.abs(expected[0] - expected[1]).max() > 0.4
