"""Section 3.2.3: who may attend to whom, by hand."""

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.layers import causal_mask, padding_mask


def test_padding_is_false_and_tokens_true():
    mask = np.array(padding_mask(np.array([[5, 6, 0], [7, 0, 0]])))
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, [[[True, True, False]], [[True, False, False]]])


def test_causal_mask_is_lower_triangular():
    mask = np.array(causal_mask(4))
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, np.tril(np.ones((1, 4, 4), bool)))


def test_masks_join_with_and_and_broadcast_over_the_batch():
    ids = np.array([[5, 6, 0], [7, 8, 9]])
    joined = np.array(padding_mask(ids) & causal_mask(3))
    assert joined.shape == (2, 3, 3)
    np.testing.assert_array_equal(
        joined[0], [[True, False, False], [True, True, False], [True, True, False]]
    )
    np.testing.assert_array_equal(joined[1], np.tril(np.ones((3, 3), bool)))


def test_masks_are_made_in_a_graph_of_unknown_length():
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def joined(ids):
        return padding_mask(ids) & causal_mask(keras.ops.shape(ids)[1])

    for length in (1, 3):
        np.testing.assert_array_equal(
            joined(np.ones((2, length), "int32")), np.tril(np.ones((2, length, length), bool))
        )
