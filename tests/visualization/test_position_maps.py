"""What models know positions by, as numbers."""

import math

import numpy as np
import pytest
from drawn_models import drawn

from keras_transformer.visualization.position_maps import maps_of

SIZES = {"d_model": 16, "num_heads": 2}


def test_sinusoids_are_the_paper_s():
    encoding, products = maps_of(drawn(), 9)
    table = [
        [
            (math.sin, math.cos)[column % 2](position / 10000 ** (column // 2 * 2 / 16))
            for column in range(16)
        ]
        for position in range(9)
    ]
    np.testing.assert_allclose(encoding.values, table, atol=1e-6)
    np.testing.assert_allclose(products.values, np.array(table) @ np.transpose(table), atol=1e-5)


def test_learned_positions_are_the_rows_of_their_table():
    model = drawn(positions="learned", max_positions=12)
    encoding, _ = maps_of(model, 9)
    np.testing.assert_allclose(
        encoding.values, model.embedding.encoding.table.numpy()[:9], atol=1e-6
    )


def test_source_and_target_have_a_map_each_where_their_embeddings_are_two():
    model = drawn(positions="learned", max_positions=12, tie_embeddings="decoder")
    found = maps_of(model, 9)
    assert [one.title for one in found[::2]] == [
        "encoding in source_embedding",
        "encoding in embedding",
    ]
    for one, embedding in zip(found[::2], (model.source_embedding, model.embedding), strict=True):
        np.testing.assert_allclose(one.values, embedding.encoding.table.numpy()[:9], atol=1e-6)


def test_relative_positions_are_biases_by_distance():
    model = drawn(positions="relative")
    encoder, decoder = maps_of(model, 9)
    assert (encoder.first_column, encoder.values.shape) == (-4, (2, 9))
    bias = model.encoder.layers[0].self_attention.heads.positions.bias.numpy()
    # Distances below 8 have a bucket each, and those behind the query the second half.
    buckets = [4, 3, 2, 1, 0, 17, 18, 19, 20]
    np.testing.assert_allclose(encoder.values, bias[:, buckets])
    bias = model.decoder.layers[0].self_attention.heads.positions.bias.numpy()
    # The decoder sees what lies behind, in exact buckets up to a distance of 15.
    assert decoder.first_column == -8
    np.testing.assert_allclose(decoder.values, bias[:, [8, 7, 6, 5, 4, 3, 2, 1, 0]])


def test_shaw_s_positions_are_vectors_by_distance():
    model = drawn(positions="shaw")
    encoder, decoder = maps_of(model, 9)
    keys = model.encoder.layers[0].self_attention.heads.positions.keys.numpy()
    assert encoder.first_column == decoder.first_column == -16
    np.testing.assert_array_equal(encoder.values, keys.T)
    keys = model.decoder.layers[0].self_attention.heads.positions.keys.numpy()
    np.testing.assert_array_equal(decoder.values, keys[:17].T)


def test_rotary_positions_are_what_turning_does_to_a_product():
    model = drawn(positions="rotary")
    [found] = maps_of(model, 9)
    positions = model.decoder.layers[0].self_attention.heads.positions
    for pair in range(4):
        x = np.zeros((1, 1, 9, 8), np.float32)
        x[..., 2 * pair] = 1
        turned = np.array(positions.placed(x))[0, 0]
        np.testing.assert_allclose(found.values[pair], turned @ turned[0], atol=1e-6)


def test_a_model_without_positions_is_told():
    with pytest.raises(ValueError, match="the model knows no positions"):
        maps_of(drawn(positions="none"))
