"""Products that wait for one another, counted in a model's graph, beside those of the formulas."""

import importlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.models import ConvolutionalTranslator, RecurrentTranslator, Transformer

PIECES = 50
SOURCE = 7
TARGET = 5
INPUTS = (np.ones((3, SOURCE), np.int32), np.ones((3, TARGET), np.int32))


@pytest.fixture
def sequential_products(benchmark_of):
    return benchmark_of("paper.architectures").sequential_products


def test_a_layer_s_products_wait_for_one_another(sequential_products):
    """Projections, scores, their sum, W^O, and two maps of the feed-forward network; in the end the
    projection onto the vocabulary.
    """
    layers = 2
    sizes = {"num_layers": layers, "d_model": 16, "d_ff": 24, "num_heads": 2}
    model = Transformer(vocabulary_size=PIECES, **sizes)
    attention = 4
    encoder = layers * (attention + 2)
    # The first layer's self-attention to the target runs beside the encoder.
    decoder = layers * (2 * attention + 2) - attention
    assert sequential_products(model, INPUTS) == encoder + decoder + 1


def test_an_lstm_s_products_are_those_of_all_its_turns(sequential_products):
    model = RecurrentTranslator(vocabulary_size=PIECES, num_layers=1, d_model=8)
    # A layer that reads, keys, scores, sum, W^O, combination, projection. The layer that writes
    # runs beside the one that reads.
    assert sequential_products(model, INPUTS) == SOURCE + 4 + 2


@pytest.mark.parametrize("masked", [False, True])
def test_an_lstm_s_chain_is_as_long_in_cudnn_s_one_operation(
    sequential_products, monkeypatch, masked
):
    inputs = keras.Input((7, 6))
    x = keras.layers.Masking()(inputs) if masked else inputs
    lstm = keras.layers.LSTM(4, return_sequences=True)
    model = keras.Model(inputs, keras.layers.Dense(2)(lstm(x)))
    found = []
    for on_gpu in (False, True):
        # Keras has a function of the module's name.
        rnn = importlib.import_module("keras.src.backend.tensorflow.rnn")
        monkeypatch.setattr(rnn, "_is_gpu_available", lambda on_gpu=on_gpu: on_gpu)
        found.append(sequential_products(model, tf.ones((3, 7, 6))))
    assert found == [7 + 1] * 2


def test_a_convolutional_model_s_products_are_its_blocks(sequential_products):
    sizes = {"num_layers": 2, "d_model": 8, "kernel_size": 3}
    model = ConvolutionalTranslator(vocabulary_size=PIECES, **sizes)
    # Two blocks that read, scores and sum; a block, query, scores and sum; map and projection.
    assert sequential_products(model, INPUTS) == 2 + 2 + 4 + 2
