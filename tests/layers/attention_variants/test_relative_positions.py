"""Positions that self-attention itself knows: buckets, clipped distances and rotations."""

import keras
import numpy as np
import pytest
from oracles import attentions, paper

from keras_transformer.layers.attention_variants.relative_positions import (
    RelativeBias,
    RelativeKeysAndValues,
    Rotary,
    distances,
)


@pytest.mark.parametrize(("queries", "keys", "following"), [(4, 4, 0), (1, 5, 0), (3, 9, 3)])
def test_distances_are_those_of_keys_behind_queries(queries, keys, following):
    found = np.array(distances(queries, keys, following))
    last = keys - 1 - following
    for t in range(queries):
        for s in range(keys):
            assert found[t, s] == s - (last - (queries - 1 - t))


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (8, 9), (16, 100)])
def test_buckets_are_those_of_t5(bidirectional, num_buckets, max_distance):
    layer = RelativeBias(bidirectional, num_buckets, max_distance)
    far = np.arange(-300, 301)
    expected = [
        attentions.t5_bucket(int(distance), bidirectional, num_buckets, max_distance)
        for distance in far
    ]
    np.testing.assert_array_equal(layer.buckets(far), expected)
    assert set(expected) == set(range(num_buckets)) - (
        {num_buckets // 2} if bidirectional else set()
    )


def test_shaw_s_default_is_the_authors_clipping_distance():
    layer = RelativeKeysAndValues()
    layer.build((None, 2, None, 6), (None, 2, None, 5))
    assert [tuple(weight.shape) for weight in layer.weights] == [(33, 6), (33, 5)]


def test_rotations_are_the_matrices_of_the_paper_and_keep_lengths(random):
    x = random(2, 3, 5, 8)
    turned = np.array(Rotary().placed(x))
    expected = np.stack([x[:, :, m] @ attentions.rotation(m, 8).T for m in range(5)], axis=2)
    np.testing.assert_allclose(turned, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-5
    )
    later = np.array(Rotary().placed(x[:, :, 3:], after=x[:, :, :3]))
    np.testing.assert_allclose(later, turned[:, :, 3:], rtol=1e-6, atol=1e-6)
    assert np.abs(Rotary().placed(x[:, :, 3:]) - later).max() > 0.1


def test_rotations_in_bfloat16_tell_position_256_from_257(random):
    ones = keras.ops.ones((1, 1, 2, 4), dtype="bfloat16")
    before = keras.ops.zeros((1, 1, 256, 4), dtype="bfloat16")
    turned = keras.ops.convert_to_numpy(
        keras.ops.cast(Rotary(dtype="mixed_bfloat16").placed(ones, after=before), "float32")
    )[0, 0]
    angles = paper.sinusoidal_positions([256, 257], 4)
    expected = angles[:, 1::2] - angles[:, 0::2]
    np.testing.assert_allclose(turned[:, 0::2], expected, atol=2**-7)
    assert np.abs(expected[0] - expected[1]).max() > 0.4
