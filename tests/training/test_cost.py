"""Operations counted in a model's graph, beside the sum over the paper's matrices."""

import importlib

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_model import transformer

from keras_transformer.models import ConvolutionalTranslator, RecurrentTranslator, Transformer
from keras_transformer.training.cost import Cost, forward_operations, operations_of_an_update
from keras_transformer.training.embedding_start import embeddings, start_embeddings

SIZES = {"num_layers": 2, "d_model": 16, "d_ff": 24, "num_heads": 2}
PIECES = 50


def by_hand(sentences, source, target):
    """Section 3's products, two operations for each term of their sums."""
    d_model = SIZES["d_model"]
    projections = d_model**2 * (4 * source + 4 * target + 2 * target + 2 * source)
    feed_forward = 2 * d_model * SIZES["d_ff"] * (source + target)
    scores_and_sums = 2 * d_model * (source**2 + target**2 + source * target)
    layers = SIZES["num_layers"] * (projections + feed_forward + scores_and_sums)
    return 2 * sentences * (layers + d_model * PIECES * target)


def ids(sentences, length):
    return np.ones((sentences, length), np.int32)


def test_a_forward_pass_takes_the_paper_s_products():
    model = Transformer(vocabulary_size=PIECES, **SIZES)
    assert forward_operations(model, (ids(3, 7), ids(3, 5))) == by_hand(3, 7, 5)


def test_an_lstm_s_products_are_those_of_all_its_turns():
    """Four gates from x and h at each position; then additive attention of one head."""
    d = 8
    model = RecurrentTranslator(vocabulary_size=PIECES, num_layers=1, d_model=d)
    source, target = 7, 5
    bidirectional = 2 * source * (d + d // 2) * 4 * (d // 2)
    writing = target * (d + d) * 4 * d
    projections = 2 * d**2 * (source + target)
    scores_and_sums = 2 * d * source * target
    combination = target * 2 * d * d
    products = bidirectional + writing + projections + scores_and_sums + combination
    expected = 2 * 3 * (products + d * PIECES * target)
    assert forward_operations(model, (ids(3, source), ids(3, target))) == expected


@pytest.mark.parametrize("masked", [False, True])
def test_an_lstm_costs_as_much_in_cudnn_s_one_operation(monkeypatch, masked):
    inputs = keras.Input((7, 6))
    x = keras.layers.Masking()(inputs) if masked else inputs
    lstm = keras.layers.LSTM(4, return_sequences=True)
    model = keras.Model(inputs, keras.layers.Dense(2)(lstm(x)))
    expected = 2 * 3 * 7 * ((6 + 4) * 4 * 4 + 4 * 2)
    counts = []
    for on_gpu in (False, True):
        # Keras has a function of the module's name.
        rnn = importlib.import_module("keras.src.backend.tensorflow.rnn")
        monkeypatch.setattr(rnn, "_is_gpu_available", lambda on_gpu=on_gpu: on_gpu)
        counts.append(forward_operations(model, tf.ones((3, 7, 6))))
    assert counts == [expected] * 2


@pytest.mark.parametrize("equation", ["bhtr,bsr->bhts", "bh...r,bsr->bh...s"])
def test_an_einsum_counts_the_sizes_of_all_its_letters(equation):
    """As of positions="shaw"."""
    x = keras.Input((2, 5, 3))
    y = keras.Input((6, 3))
    model = keras.Model((x, y), keras.ops.einsum(equation, x, y))
    inputs = (tf.ones((4, 2, 5, 3)), tf.ones((4, 6, 3)))
    assert forward_operations(model, inputs) == 2 * (4 * 2 * 5 * 6 * 3)


def test_a_convolutional_model_s_products_are_its_blocks():
    d = 8
    sizes = {"num_layers": 2, "d_model": d, "kernel_size": 3}
    model = ConvolutionalTranslator(vocabulary_size=PIECES, **sizes)
    source, target = 7, 5
    blocks = 2 * 3 * d * 2 * d * (source + target)
    attentions = 2 * (d * d * target + 2 * d * source * target)
    inputs = (ids(3, source), ids(3, target))
    ends = (d * d + d * PIECES) * target
    assert forward_operations(model, inputs) == 2 * 3 * (blocks + attentions + ends)


def test_convolutions_count_their_windows():
    inputs = keras.Input((10, 4))
    y = keras.layers.Conv1D(6, 3, padding="same")(inputs)
    model = keras.Model(inputs, keras.layers.SeparableConv1D(8, 5, padding="same")(y))
    expected = 2 * 10 * (6 * 3 * 4 + 6 * 5 + 6 * 8)
    assert forward_operations(model, tf.ones((1, 10, 4))) == expected


def test_an_update_is_the_mean_over_its_batches():
    inputs = keras.Input((None, 4))
    model = keras.Model(inputs, keras.layers.Dense(3)(inputs))
    batches = [(np.ones(shape, np.float32), None, None) for shape in ((2, 7, 4), (4, 3, 4))] * 3
    whole = 2 * (2 * 7 + 4 * 3) * 4 * 3
    assert operations_of_an_update(model, batches) == whole / 2
    assert operations_of_an_update(model, batches, parts=2) == whole


def test_the_estimate_is_time_devices_and_rate():
    cost = Cost(counted=3e12, seconds=60.0, devices=2, sustained=1e11)
    assert cost.as_dict()["estimated"] == 1.2e13
    assert cost.describe() == (
        "cost: 3e+12 operations counted; 1.2e+13 as the paper estimates (1.0 min x 2 devices x 100 "
        "GFLOP/s), of which 25% were counted"
    )


# The start of the embeddings against eigenvectors in NumPy.
def information_of(counts):
    """M by its definition, in float64."""
    of_i = counts.astype(np.float64).sum(axis=1)
    of_j = of_i**0.75 / (of_i**0.75).sum()
    ratios = counts / of_i[:, None] / of_j
    information = np.log(ratios, where=ratios > 1, out=np.zeros_like(ratios))
    return (information + information.T) / 2


def test_embeddings_are_the_largest_eigenvectors_of_the_information():
    rng = np.random.default_rng(0)
    topic = np.arange(40) % 4
    counts = rng.gamma(2, size=(40, 40)) * np.where(topic[:, None] == topic, 1, 0.02)
    counts = (counts + counts.T).astype(np.float32)
    np.fill_diagonal(counts, 0)
    values, vectors = np.linalg.eigh(information_of(counts))
    expected = vectors[:, -4:] * np.sqrt(values[-4:])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    table = embeddings(counts, 4, seed=0)
    # Their products do not depend on the rotation of either.
    np.testing.assert_allclose(table @ table.T, expected @ expected.T, rtol=0, atol=1e-3)
    reseeded = embeddings(counts, 4, seed=1)
    np.testing.assert_allclose(reseeded @ reseeded.T, table @ table.T, rtol=0, atol=1e-3)
    assert np.abs(reseeded - table).max() > 0.1
    fewer = embeddings(counts, 3, seed=0)
    assert np.abs(fewer @ fewer.T - expected @ expected.T).max() > 0.1


def test_more_dimensions_than_pieces_and_pieces_that_never_come_together():
    counts = np.ones((3, 3), np.float32) - np.eye(3, dtype=np.float32)
    vectors = embeddings(counts, 8, seed=0)
    assert vectors.shape == (3, 8)
    assert np.isfinite(vectors).all()
    assert not embeddings(np.zeros((5, 5), np.float32), 4, seed=0).any()


def test_pieces_of_the_same_pairs_lie_together_and_the_others_stay_as_drawn():
    keras.utils.set_random_seed(0)
    model = transformer()
    [table] = (weight for weight in model.weights if weight.path == "embedding/table")
    before = np.asarray(keras.ops.stop_gradient(table))
    counts = np.zeros((20, 20), np.float32)
    counts[4:7, 4:7] = counts[7:10, 7:10] = 5 * (1 - np.eye(3))
    start_embeddings(model, counts, seed=0)
    after = np.asarray(keras.ops.stop_gradient(table))
    lengths = np.linalg.norm(after, axis=1, keepdims=True)
    cosines = (after / lengths) @ (after / lengths).T
    assert cosines[4, 5] > 0.5
    assert cosines[7, 9] > 0.5
    assert abs(cosines[4, 7]) < 0.5
    np.testing.assert_array_equal(after[10:], before[10:])
    mean_square = np.mean(np.sum(after[4:10] ** 2, axis=1))
    assert mean_square == pytest.approx(np.mean(np.sum(before**2, axis=1)), rel=0.5)


def test_each_side_has_its_own_pieces():
    keras.utils.set_random_seed(0)
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2}
    model = Transformer(vocabulary_size=10, tie_embeddings="none", **sizes)
    tables = {weight.path: weight for weight in model.weights if weight.path.endswith("/table")}
    before = {path: np.asarray(keras.ops.stop_gradient(table)) for path, table in tables.items()}
    counts = np.zeros((20, 20), np.float32)
    # Pieces 4 and 5 of the source come with piece 6 of the target, and 7 with 8.
    for i, j in [(4, 5), (4, 16), (5, 16), (7, 18)]:
        counts[i, j] = counts[j, i] = 3
    start_embeddings(model, counts, seed=0)
    after = {path: np.asarray(keras.ops.stop_gradient(table)) for path, table in tables.items()}
    changed = {path: (after[path] != before[path]).any(axis=1).nonzero()[0] for path in tables}
    assert changed["source_embedding/table"].tolist() == [4, 5, 7]
    assert changed["embedding/table"].tolist() == [6, 8]
    assert changed["projection/table"].tolist() == []
    source, target = after["source_embedding/table"], after["embedding/table"]
    assert source[4] @ target[6] > source[4] @ target[8]
    assert source[7] @ target[8] > source[7] @ target[6]
