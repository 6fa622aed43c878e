"""The probabilities of what may come next against the definition, in NumPy float64."""

import numpy as np
import pytest
import tensorflow as tf
from oracles.enumeration import BOS, PAD

from keras_transformer.decoding.candidates import next_tokens

SHAPES = [(1.0, 0, 1.0), (0.5, 0, 1.0), (2.0, 3, 1.0), (1.0, 0, 0.7), (3.0, 6, 0.5), (1.0, 1, 0.1)]
SIZE = 30


def definition(logits, temperature, top_k, top_p):
    """Ids, likeliest first, and the probability that each is drawn, by a loop."""
    shaped = np.exp(logits.astype(np.float64) / temperature)
    order = [id_ for id_ in np.argsort(-logits, kind="stable") if id_ not in (PAD, BOS)]
    pool = order[: top_k or len(order)]
    kept = []
    for id_ in pool:
        if sum(shaped[kept]) < top_p * sum(shaped[pool]):
            kept.append(id_)
    drawn = {id_: shaped[id_] / sum(shaped[kept]) for id_ in kept}
    return order, [drawn.get(id_, 0.0) for id_ in order]


def found(logits, shapes, count):
    temperature, top_k, top_p = map(np.array, zip(*shapes, strict=True))
    options = (
        tf.constant(temperature, tf.float32),
        tf.constant(top_k),
        tf.constant(top_p, tf.float32),
    )
    return next_tokens(tf.constant(logits), *options, count)


def test_rows_with_options_of_their_own_are_as_defined():
    logits = np.random.default_rng(2).normal(0, 2, (len(SHAPES), SIZE)).astype("float32")
    logits[:, [PAD, BOS]] = 9  # the likeliest, which never come
    ids, drawn, probabilities = found(logits, SHAPES, 20)
    assert ids.shape == (len(SHAPES), 20)
    model = np.exp(logits.astype(np.float64))
    model /= model.sum(axis=1, keepdims=True)
    for row, shape in enumerate(SHAPES):
        order, expected = definition(logits[row], *shape)
        assert ids[row].numpy().tolist() == order[:20]
        np.testing.assert_allclose(drawn[row], expected[:20], rtol=1e-5)
        np.testing.assert_allclose(probabilities[row], model[row][order[:20]], rtol=1e-5)


def test_a_small_vocabulary_has_fewer():
    ids, drawn, _ = found(np.zeros((1, 6), "float32"), [(1.0, 0, 1.0)], 20)
    assert ids.shape == (1, 6)
    np.testing.assert_allclose(drawn, [[0.25] * 4 + [0.0] * 2], rtol=1e-6)


@pytest.mark.parametrize("other", [(1.1, 0, 0.7), (1.0, 2, 0.7), (1.0, 0, 0.3)])
def test_control_other_options_are_another_distribution(other):
    logits = np.random.default_rng(3).normal(0, 1, (1, SIZE)).astype("float32")
    _, drawn, _ = found(logits, [(1.0, 0, 0.7)], 20)
    _, expected = definition(logits[0], *other)
    assert np.abs(drawn[0] - expected[:20]).max() > 1e-3
