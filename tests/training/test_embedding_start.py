"""The start of the embeddings against eigenvectors in NumPy."""

import keras
import numpy as np
import pytest
from small_model import transformer

from keras_transformer.models import Transformer
from keras_transformer.training.embedding_start import embeddings, start_embeddings


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
    found = embeddings(counts, 4, seed=0)
    # Their products do not see how both are turned.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, rtol=0, atol=1e-3)
    other = embeddings(counts, 4, seed=1)
    np.testing.assert_allclose(other @ other.T, found @ found.T, rtol=0, atol=1e-3)
    assert np.abs(other - found).max() > 0.1
    fewer = embeddings(counts, 3, seed=0)
    assert np.abs(fewer @ fewer.T - expected @ expected.T).max() > 0.1


def test_more_dimensions_than_pieces():
    counts = np.ones((3, 3), np.float32) - np.eye(3, dtype=np.float32)
    found = embeddings(counts, 8, seed=0)
    assert found.shape == (3, 8)
    assert np.isfinite(found).all()


def test_pieces_that_never_come_together_have_no_embeddings():
    assert not embeddings(np.zeros((5, 5), np.float32), 4, seed=0).any()


def test_pieces_of_the_same_pairs_lie_together_and_the_others_stay_as_drawn():
    keras.utils.set_random_seed(0)
    model = transformer()
    [table] = (one for one in model.weights if one.path == "embedding/table")
    drawn = np.asarray(keras.ops.stop_gradient(table))
    counts = np.zeros((20, 20), np.float32)
    counts[4:7, 4:7] = counts[7:10, 7:10] = 5 * (1 - np.eye(3))
    start_embeddings(model, counts, seed=0)
    mixed = np.asarray(keras.ops.stop_gradient(table))
    lengths = np.linalg.norm(mixed, axis=1, keepdims=True)
    cosines = (mixed / lengths) @ (mixed / lengths).T
    assert cosines[4, 5] > 0.5
    assert cosines[7, 9] > 0.5
    assert abs(cosines[4, 7]) < 0.5
    np.testing.assert_array_equal(mixed[10:], drawn[10:])
    seen = np.mean(np.sum(mixed[4:10] ** 2, axis=1))
    assert seen == pytest.approx(np.mean(np.sum(drawn**2, axis=1)), rel=0.5)


def test_each_side_has_its_own_pieces():
    keras.utils.set_random_seed(0)
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2}
    model = Transformer(vocabulary_size=10, tie_embeddings="none", **sizes)
    tables = {one.path: one for one in model.weights if one.path.endswith("/table")}
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
