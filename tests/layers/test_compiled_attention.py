"""What TensorFlow makes of attention when it compiles a graph for inference."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from keras_transformer.layers import scaled_dot_product
from keras_transformer.models import Hyperparameters, Transformer

SOURCE = np.arange(2, 12, dtype="int32").reshape(2, 5)
TARGET = np.arange(2, 16, dtype="int32").reshape(2, 7)


def compiled_operations():
    """The kinds of operations of a small model's graph, optimized."""
    model = Transformer(
        Hyperparameters(vocabulary_size=20, num_layers=1, d_model=8, d_ff=8, num_heads=2)
    )
    forward = tf.function(lambda source, target: model([source, target], training=False))
    context.context().enable_graph_collection()
    try:
        forward(tf.constant(SOURCE), tf.constant(TARGET))
        collected = context.context().export_run_metadata()
    finally:
        context.context().disable_graph_collection()
    graphs = [graph for one in collected.function_graphs for graph in one.partition_graphs]
    return {node.op for graph in graphs for node in graph.node}


def test_scores_are_a_product_of_their_own():
    # oneDNN has only reference code for a product of matrices with a factor and a sum behind it.
    found = compiled_operations()
    assert [kind for kind in found if kind.endswith("BatchMatMulV2")]
    assert not [kind for kind in found if "FusedBatchMatMul" in kind]


def test_a_mask_that_is_added_would_be_part_of_it(monkeypatch):
    def added(scores, mask):
        return scores + tf.where(mask, 0.0, scaled_dot_product.FLOOR)

    monkeypatch.setattr(scaled_dot_product, "_floored", added)
    found = compiled_operations()
    if not any(kind.startswith("_Mkl") for kind in found):
        pytest.skip("this TensorFlow was built without oneDNN")
    assert [kind for kind in found if "FusedBatchMatMul" in kind]
