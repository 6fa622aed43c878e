"""Section 3.5: what is added to the embeddings, learned or not."""

import numpy as np
import pytest
from oracles import paper

from keras_transformer.layers import PositionalEmbedding
from keras_transformer.layers.embedding import LearnedEncoding, NoEncoding

IDS = np.array([[3, 1, 4, 1, 5], [5, 9, 2, 6, 5]])


def test_learned_positions_are_rows_of_a_table_whose_last_one_stays(randomized):
    layer = randomized(PositionalEmbedding(10, 8, encoding=LearnedEncoding(3)), IDS)
    assert [w.path.partition("/")[2] for w in layer.weights] == ["table", "encoding/table"]
    table, positions = (weight.astype("float64") for weight in layer.get_weights())
    expected = table[IDS] * 8**0.5 + positions[[0, 1, 2, 2, 2]]
    np.testing.assert_allclose(layer(IDS), expected, rtol=1e-6, atol=1e-6)
    assert np.abs(expected - paper.embedding(IDS, table)).max() > 0.1
    one = layer(IDS[:, 4:], positions=np.array([[4]]))
    np.testing.assert_allclose(one, expected[:, 4:], rtol=1e-6, atol=1e-6)


def test_no_positions_leave_the_scaled_embedding(randomized):
    layer = randomized(PositionalEmbedding(10, 8, encoding=NoEncoding()), IDS)
    table = layer.table.numpy()
    np.testing.assert_allclose(layer(IDS), table[IDS] * 8**0.5, rtol=1e-6, atol=1e-6)
    assert len(layer.weights) == 1


@pytest.mark.parametrize("encoding", [LearnedEncoding(3), NoEncoding()], ids=["learned", "none"])
def test_each_embedding_has_an_encoding_of_its_own(encoding):
    layers = [PositionalEmbedding(10, 8, encoding=encoding) for _ in range(2)]
    assert layers[0].encoding is not layers[1].encoding
    assert not encoding.built
