"""Operations counted in a model's graph, beside the sum over the paper's matrices."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.models import Transformer
from keras_transformer.training.cost import Cost, forward_operations, operations_of_an_update

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
