"""Section 3.2.1, footnote 4: why the dot product is scaled."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.layers.scaled_dot_product import DotProduct, ScaledDotProduct


def gradient_of_softmax(similarity, d_k):
    """Its mean norm over queries, for queries and keys whose components have variance 1."""
    draw = np.random.default_rng(0).normal
    query = draw(size=(1, 1, 200, d_k)).astype("float32")
    key = draw(size=(1, 1, 16, d_k)).astype("float32")
    # What is added to the scores has their gradient; values of the identity give the weights.
    nothing = tf.zeros((1, 1, 200, 16))
    with tf.GradientTape() as tape:
        tape.watch(nothing)
        weights, _ = similarity.attend(query, key, tf.eye(16)[None, None], bias=nothing)
    cotangent = draw(size=(1, 1, 200, 16)).astype("float32")
    gradient = tape.gradient(weights, nothing, output_gradients=cotangent)
    return float(tf.reduce_mean(tf.norm(gradient, axis=-1)))


def test_the_gradient_of_the_softmax_vanishes_with_d_k_without_the_scaling():
    unscaled, scaled = (
        {d_k: gradient_of_softmax(similarity, d_k) for d_k in (4, 64, 1024, 16384)}
        for similarity in (DotProduct(), ScaledDotProduct())
    )
    assert unscaled[4] > 1.5 * unscaled[64] > 2 * unscaled[1024] > 2.5 * unscaled[16384]
    assert unscaled[16384] < 0.1 * unscaled[4]
    # The scaled one stays what it is.
    assert max(scaled.values()) < 1.2 * min(scaled.values())


@pytest.mark.parametrize("d_k", [16, 256])
def test_the_variance_of_a_dot_product_is_d_k_and_of_a_scaled_one_1(d_k):
    draw = np.random.default_rng(1).normal
    query, key = (draw(size=(1, 2, 300, d_k)).astype("float32") for _ in range(2))
    assert np.var(DotProduct().scores(query, key)) == pytest.approx(d_k, rel=0.05)
    _, weights = ScaledDotProduct().attend(query, key, key)
    # But for a number for each query.
    scores = np.log(weights)
    assert np.var(scores - scores.mean(-1, keepdims=True)) == pytest.approx(1, rel=0.05)
