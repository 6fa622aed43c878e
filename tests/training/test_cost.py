"""Operations counted in a model's graph, beside the sum over the paper's matrices."""

import importlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.models import ConvolutionalTranslator, RecurrentTranslator, Transformer
from keras_transformer.training.cost import (
    Cost,
    forward_operations,
    operations_of_an_update,
)

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


@pytest.fixture(scope="module")
def model():
    return Transformer(vocabulary_size=PIECES, **SIZES)


def test_a_forward_pass_takes_the_paper_s_products(model):
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
    found = []
    for on_gpu in (False, True):
        # Keras has a function of the module's name.
        rnn = importlib.import_module("keras.src.backend.tensorflow.rnn")
        monkeypatch.setattr(rnn, "_is_gpu_available", lambda on_gpu=on_gpu: on_gpu)
        found.append(forward_operations(model, tf.ones((3, 7, 6))))
    assert found == [expected] * 2


@pytest.mark.parametrize("equation", ["bhtr,bsr->bhts", "bh...r,bsr->bh...s"])
def test_an_einsum_counts_the_sizes_of_all_its_letters(equation):
    """As of positions="shaw"."""
    x = keras.Input((2, 5, 3))
    y = keras.Input((6, 3))
    model = keras.Model((x, y), keras.ops.einsum(equation, x, y))
    assert forward_operations(model, (tf.ones((4, 2, 5, 3)), tf.ones((4, 6, 3)))) == 2 * (
        4 * 2 * 5 * 6 * 3
    )


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


def test_an_update_is_the_mean_over_its_batches(model):
    batches = [((ids(2, 7), ids(2, 5)), None, None), ((ids(4, 3), ids(4, 6)), None, None)] * 3
    whole = by_hand(2, 7, 5) + by_hand(4, 3, 6)
    assert operations_of_an_update(model, batches) == whole / 2
    assert operations_of_an_update(model, batches, parts=2) == whole


def test_the_estimate_is_time_devices_and_rate():
    cost = Cost(counted=3e12, seconds=60.0, devices=2, sustained=1e11)
    assert cost.as_dict()["estimated"] == 1.2e13
    assert cost.describe() == (
        "cost: 3e+12 operations counted; 1.2e+13 as the paper estimates (1.0 min x 2 devices x 100 "
        "GFLOP/s), of which 25% were counted"
    )
