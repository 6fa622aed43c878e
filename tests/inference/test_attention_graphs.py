"""Which graphs of a model ask for its attention."""

import numpy as np
import pytest
import tensorflow as tf
from drawn_models import drawn
from eager import eagerly

from keras_transformer.inference.model_graphs import AttentionGraphs
from keras_transformer.layers.attention_variants.linear_cost import LinearHeads

SOURCE = np.array([[5, 9, 4, 17, 3], [11, 7, 3, 0, 0]])


def test_a_search_asks_for_no_attention_of_the_encoder(monkeypatch):
    """A linear attention would take n^2 steps for it."""
    graphs = AttentionGraphs(drawn(attention="linear"))
    with eagerly():
        memory = graphs.encode(tf.constant(SOURCE))["memory"]
        read, weights = graphs.model.encode_with_attention(SOURCE)
        expected = graphs.model.cache(SOURCE, read)["memory"]

        def asked(*_):
            raise AssertionError("the weights were asked for")

        monkeypatch.setattr(LinearHeads, "with_weights", asked)
        again = graphs.encode(tf.constant(SOURCE))["memory"]
        # A control: who wants attention asks for it.
        with pytest.raises(AssertionError):
            graphs.attention(tf.constant(SOURCE), tf.constant(SOURCE))
    assert weights["encoder"].shape == (2, 1, 2, 5, 5)
    for found, same, wanted in zip(*map(tf.nest.flatten, (memory, again, expected)), strict=True):
        np.testing.assert_array_equal(found, same)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
