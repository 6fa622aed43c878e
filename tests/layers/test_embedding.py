"""Sections 3.4 and 3.5: one table, scaled, with positions; and back to the vocabulary, for the next
token or for those after it.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import paper

from keras_transformer.layers import PositionalEmbedding, ProposalHeads, sinusoidal_positions
from keras_transformer.layers.embedding import HalvesEncoding, LearnedEncoding, NoEncoding

IDS = np.array([[3, 1, 4, 1], [5, 9, 2, 6]])


@pytest.fixture
def embedding(randomized):
    return randomized(PositionalEmbedding(10, 8, dropout=0.5), IDS)


def test_embedding_is_the_scaled_row_plus_its_position(embedding):
    table = embedding.table.numpy()
    expected = paper.embedding(IDS, table)
    np.testing.assert_allclose(embedding(IDS), expected, rtol=1e-6, atol=1e-6)
    assert np.abs(expected - table[IDS] * 8**0.5).max() > 0.5


@pytest.mark.parametrize("output_bias", [False, True])
def test_reverse_is_the_product_with_the_same_table_and_may_add_a_bias(
    output_bias, randomized, random
):
    layer = randomized(PositionalEmbedding(10, 8, output_bias=output_bias), IDS)
    table, *bias = layer.get_weights()
    assert len(bias) == output_bias
    x = random(2, 4, 8)
    expected = x.astype("float64") @ table.T + sum(bias)
    np.testing.assert_allclose(layer(x, reverse=True), expected, rtol=0, atol=1e-6)


def test_the_table_starts_at_unit_variance_after_scaling():
    keras.utils.set_random_seed(0)
    layer = PositionalEmbedding(1000, 64)
    layer(IDS)
    assert abs(np.std(layer.table.numpy() * 8) - 1) < 0.02


def test_dropout_acts_in_training_only_on_the_sum_and_preserves_its_expectation():
    keras.utils.set_random_seed(0)
    layer = PositionalEmbedding(10, 64, dropout=0.2)
    ids = np.tile(IDS, (64, 8))
    plain = np.array(layer(ids))
    np.testing.assert_array_equal(layer(ids, training=False), plain)
    dropped = np.array(layer(ids, training=True))
    is_kept = dropped != 0
    assert abs(is_kept.mean() - 0.8) < 0.01
    np.testing.assert_allclose(dropped[is_kept], plain[is_kept] / 0.8, rtol=1e-5)


def test_token_dropout_takes_whole_tokens_and_leaves_their_positions():
    keras.utils.set_random_seed(0)
    layer = PositionalEmbedding(10, 64, token_dropout=0.3)
    ids = np.tile(IDS, (64, 8))
    positions = np.array(layer.encoding.added(np.zeros((*ids.shape, 64)), np.arange(32)[None]))
    tokens = np.array(layer(ids, training=True)) - positions
    is_dropped = np.abs(tokens).max(axis=-1) < 1e-5
    assert abs(is_dropped.mean() - 0.3) < 0.03
    plain = np.array(layer(ids)) - positions
    np.testing.assert_allclose(tokens[~is_dropped], plain[~is_dropped] / 0.7, atol=1e-5)
    assert (np.abs(plain).max(axis=-1) > 0.1).all()


def test_the_projection_is_not_dropped(embedding, random):
    x = random(2, 4, 8)
    projected = embedding(x, reverse=True, training=True)
    np.testing.assert_array_equal(projected, embedding(x, reverse=True))
    assert np.abs(embedding(IDS, training=True) - embedding(IDS)).max() > 0.1


def test_mixed_bfloat16_keeps_a_float32_table_and_float32_positions():
    layer = PositionalEmbedding(10, 8, dtype="mixed_bfloat16")
    layer(IDS)
    layer.table.assign(np.zeros((10, 8)))
    positions = np.array([[256, 257]])
    out = layer(np.zeros((1, 2), "int32"), positions=positions)
    assert keras.backend.standardize_dtype(out.dtype) == "bfloat16"
    assert {w.dtype for w in layer.weights} == {"float32"}
    expected = paper.sinusoidal_positions(positions[0], 8)
    np.testing.assert_allclose(keras.ops.cast(out, "float32")[0], expected, atol=2**-8)
    assert float(keras.ops.cast(257, "bfloat16")) == 256  # why it matters
    assert np.abs(expected[0] - expected[1]).max() > 0.5


# Section 3.5: what is added to the embeddings, learned or not.
ENCODED_IDS = np.array([[3, 1, 4, 1, 5], [5, 9, 2, 6, 5]])


def test_learned_positions_are_rows_of_a_table_whose_last_one_stays(randomized):
    layer = randomized(PositionalEmbedding(10, 8, encoding=LearnedEncoding(3)), ENCODED_IDS)
    assert [w.path.partition("/")[2] for w in layer.weights] == ["table", "encoding/table"]
    table, positions = (weight.astype("float64") for weight in layer.get_weights())
    expected = table[ENCODED_IDS] * 8**0.5 + positions[[0, 1, 2, 2, 2]]
    np.testing.assert_allclose(layer(ENCODED_IDS), expected, rtol=1e-6, atol=1e-6)
    assert np.abs(expected - paper.embedding(ENCODED_IDS, table)).max() > 0.1
    last = layer(ENCODED_IDS[:, 4:], positions=np.array([[4]]))
    np.testing.assert_allclose(last, expected[:, 4:], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("scaling", "factor"), [({}, 8**0.5), ({"scaled": False}, 1)])
def test_no_positions_leave_the_embedding_scaled_unless_told_otherwise(scaling, factor, randomized):
    layer = PositionalEmbedding(10, 8, encoding=NoEncoding(), **scaling)
    table = randomized(layer, ENCODED_IDS).table.numpy()
    expected = table[ENCODED_IDS] * factor
    np.testing.assert_allclose(layer(ENCODED_IDS), expected, rtol=1e-6, atol=1e-6)
    assert len(layer.weights) == 1


@pytest.mark.parametrize("encoding", [LearnedEncoding(3), NoEncoding()], ids=["learned", "none"])
def test_each_embedding_has_an_encoding_of_its_own(encoding):
    layers = [PositionalEmbedding(10, 8, encoding=encoding) for _ in range(2)]
    assert layers[0].encoding is not layers[1].encoding
    assert not encoding.built


# Section 3.5: the sinusoids in float64, at every position that training meets and far beyond.
@pytest.mark.parametrize("d_model", [2, 6, 64, 512])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_positions_are_the_paper_s_sinusoids_in_float32_whatever_the_policy(dtype, d_model):
    positions = [*range(20), *range(250, 300), *range(490, 512), *range(4080, 4096)]
    previous = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        actual = sinusoidal_positions(np.array(positions, dtype), d_model)
    finally:
        keras.config.set_dtype_policy(previous)
    assert keras.backend.standardize_dtype(actual.dtype) == "float32"
    expected = paper.sinusoidal_positions(positions, d_model)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("rates", ["tensor2tensor", "paper"])
def test_halves_are_the_sinusoids_of_other_programs(first, rates):
    positions = np.array([[0, 1, 7, 500, 4000]])
    layer = HalvesEncoding(first, rates)
    actual = np.array(layer.added(np.zeros((1, 5, 8), "float32"), positions))
    exponents = np.arange(4) / (3 if rates == "tensor2tensor" else 4)
    angles = (positions[0, :, None] + first) / 10000.0**exponents
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(actual[0], expected, atol=1e-6)


class Reader(keras.Model):
    """A model of no known inputs: Keras builds it for float32 when it loads it."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = PositionalEmbedding(10, 8)

    def call(self, ids):
        return self.embedding(ids)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_ids_may_be_floats_where_nothing_rounds_them(tmp_path):
    model = Reader()
    expected = np.array(model(IDS))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", custom_objects={"Reader": Reader})
    np.testing.assert_array_equal(loaded(IDS), expected)
    np.testing.assert_array_equal(keras.Sequential([model.embedding])(IDS), expected)
    # TensorFlow gathers by neither int8 nor uint8.
    for dtype in ("int8", "uint8", "int64"):
        np.testing.assert_array_equal(model.embedding(np.array(IDS, dtype)), expected)
    # bfloat16 has no 257.
    message = r"ids must be integers\. Received: .*bfloat16.*\. Begin with"
    with pytest.raises(ValueError, match=message):
        PositionalEmbedding(300, 8, dtype="mixed_bfloat16")(np.array([[257.0]]))


B, T, D, S, K, H = 64, 5, 8, 4, 3, 2
RANDOM = np.random.default_rng(0)
X, E = RANDOM.normal(size=(2, B, T, D)).astype("float32")
MEMORY = RANDOM.normal(size=(B, S, 6)).astype("float32")
MASK = np.arange(S) < RANDOM.integers(1, S + 1, (B, 1, 1))


@pytest.fixture(scope="module")
def heads():
    layer = ProposalHeads(block_size=K, num_heads=H, d_ff=16)
    layer(X, E, MEMORY)
    random = np.random.default_rng(1)
    layer.set_weights([random.normal(weight, 0.3) for weight in layer.get_weights()])
    return layer


def weights(layer):
    return [np.float64(weight) for weight in layer.get_weights()]


def by_hand(heads, number, place):
    """head_m(x_t) of a place t, (B, d_model); before the first place x is 0."""
    x = np.float64(X[:, place] if place >= 0 else np.zeros_like(X[:, 0]))
    if number == 1:
        return x
    w, b = weights(heads.maps)
    columns = slice((number - 2) * D, (number - 1) * D)
    y = x + np.concatenate([x, E[:, place + 1]], axis=1) @ w[:, columns] + b[columns]
    attention = weights(heads.attention)
    network = weights(heads.feed_forward)

    def attended(y):
        """One query of each row."""
        return paper.multi_head_attention(y[:, None], MEMORY, MEMORY, *attention, H, MASK)[:, 0]

    z = paper.post_norm(y, attended, *weights(heads.attention_norm.norm))
    gains = weights(heads.feed_forward_norm.norm)
    return paper.post_norm(z, lambda z: paper.feed_forward(z, *network), *gains)


def possible(heads, place):
    """The outputs (B, d_model) for a place, of each head that needs no place before the first."""
    return [by_hand(heads, ahead, place + 1 - ahead) for ahead in range(1, min(K, place + 2) + 1)]


def test_in_training_each_position_is_predicted_by_a_head_that_is_drawn_for_it(heads):
    outputs = np.array(heads(X, E, MEMORY, memory_mask=MASK, training=True))
    heads_used = []
    for place in range(T):
        errors = [np.abs(outputs[:, place] - y).max(axis=1) for y in possible(heads, place)]
        assert np.min(errors, axis=0).max() < 1e-5
        heads_used.append(np.argmin(errors, axis=0))
    assert {*heads_used[0]} == {0, 1}
    # Each of 3 heads serves a third of 64 rows and 4 places, within 5 standard deviations.
    counts = np.bincount(np.concatenate(heads_used[1:]), minlength=K)
    assert (np.abs(counts - 4 * B / 3) < 38).all()
    # A control: the next call draws again.
    assert (np.array(heads(X, E, MEMORY, memory_mask=MASK, training=True)) != outputs).any()


def test_in_inference_call_is_the_first_head_and_a_stepper_gives_the_others(heads):
    np.testing.assert_array_equal(heads(X, E, MEMORY), X)
    expected = np.stack([by_hand(heads, number, 2) for number in (2, 3)], axis=1)
    source = heads.memory_cache(MEMORY)
    actual = heads.stepper()(X[:, 2], E[:, 3], source, MASK)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


def test_later_positions_change_nothing_and_each_weight_learns(heads):
    keras.utils.set_random_seed(1)
    layer = ProposalHeads.from_config(heads.get_config())
    layer(X, E, MEMORY)
    layer.set_weights(heads.get_weights())
    state = np.array(np.asarray(layer.seed_generator.state))
    before = np.array(layer(X, E, MEMORY, training=True))
    layer.seed_generator.state.assign(state)
    is_early = np.arange(T)[:, None] < 3
    changed = (np.where(is_early, array, -array) for array in (X, E))
    after = np.array(layer(*changed, MEMORY, training=True))
    np.testing.assert_array_equal(before[:, :3], after[:, :3])
    assert (before[:, 3:] != after[:, 3:]).any()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(X, E, MEMORY, training=True) ** 2)
    gradients = tape.gradient(loss, [variable.value for variable in layer.trainable_variables])
    assert len(gradients) == 2 + 4 + 4 + 2 * 2
    assert all(np.abs(gradient).max() > 0 for gradient in gradients)


def test_mixed_bfloat16_computes_in_bfloat16_near_float32(heads):
    mixed = ProposalHeads(block_size=K, num_heads=H, d_ff=16, dtype="mixed_bfloat16")
    output = mixed(X, E, MEMORY, training=True)
    assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    mixed.set_weights(heads.get_weights())
    # The larger the numbers, the coarser bfloat16.
    rows = X[:, 2], E[:, 3] / 4
    actual = mixed.stepper()(
        *(tf.cast(row, "bfloat16") for row in rows), mixed.memory_cache(MEMORY), MASK
    )
    expected = heads.stepper()(*rows, heads.memory_cache(MEMORY), MASK)
    np.testing.assert_allclose(tf.cast(actual, "float32"), expected, rtol=0, atol=0.1)
