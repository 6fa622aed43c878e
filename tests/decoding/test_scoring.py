"""The score of a given target is the one that a search gave it (section 6.1)."""

import numpy as np
import pytest
import tensorflow as tf
from oracles.enumeration import BOS, EOS, PAD

from keras_transformer.decoding import BeamSearch, GreedySearch, length_penalty
from keras_transformer.decoding.candidates import token_log_probabilities
from keras_transformer.models import Transformer

SOURCE = [[5, 9, 7, EOS, PAD, PAD], [8, 8, 12, 11, 30, EOS], [6, EOS, PAD, PAD, PAD, PAD]]
LIMITS = [9, 4, 12]


@pytest.fixture(scope="module")
def model():
    model = Transformer(vocabulary_size=40, num_layers=1, d_model=16, d_ff=32, num_heads=4)
    generator = np.random.default_rng(3)
    for weight in sorted(model.weights, key=lambda weight: weight.path):
        weight.assign(generator.normal(size=weight.shape) / 3)
    return model


def test_it_is_the_log_softmax_of_float64_and_padding_is_nothing():
    logits = np.random.default_rng(0).normal(size=(2, 3, 7)).astype("float32")
    ids = np.array([[4, 6, 3], [5, 3, 0]])
    exact = logits.astype("float64")
    exact -= np.log(np.exp(exact).sum(axis=-1, keepdims=True))
    expected = np.take_along_axis(exact, ids[..., None], axis=-1)[..., 0] * (ids != 0)
    np.testing.assert_allclose(
        token_log_probabilities(tf.constant(logits), tf.constant(ids)),
        expected,
        rtol=1e-6,
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("search", "alpha"),
    [(GreedySearch(), 0.0), (BeamSearch(4, 0.6, 4), 0.6), (BeamSearch(3, 0.0, 2), 0.0)],
    ids=["greedy", "beam", "sum"],
)
def test_a_search_and_the_score_of_what_it_found_agree(model, search, alpha):
    source = tf.constant(SOURCE)
    ids, scores = search(model.stepper(), model.encode(source), tf.constant(LIMITS))
    for n in range(ids.shape[1]):
        target = ids[:, n]
        shifted = tf.concat([tf.fill([len(SOURCE), 1], BOS), target[:, :-1]], axis=1)
        log_probabilities = token_log_probabilities(
            model((source, shifted), training=False), target
        )
        lengths = tf.math.count_nonzero(target, axis=1, dtype=tf.int32)
        np.testing.assert_allclose(
            tf.reduce_sum(log_probabilities, axis=1) / length_penalty(lengths, alpha),
            scores[:, n],
            rtol=1e-5,
            atol=1e-5,
        )
    assert len(set(tf.math.count_nonzero(ids[:, 0], axis=1).numpy())) > 1
