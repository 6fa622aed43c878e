"""Models to train in tests, called with `size` and `dropout`: one of a few operations, for laws
that do not depend on layers, and a Transformer, whose step takes TensorFlow seconds to trace. Noise
on weights; a callback; and eager execution: a function that a test calls once or twice is slower to
trace than to run operation by operation.
"""

import contextlib
import warnings

import keras
import pytest
import tensorflow as tf

from keras_transformer.layers import Dropout
from keras_transformer.models import Transformer
from keras_transformer.training.train_function import TrainFunction


def small_model(size=20, dropout=0.0):
    """Logits (B, T, size) from the mean of the source's embeddings and each token of the target;
    id 0 is padding.
    """
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    embedding = keras.layers.Embedding(size, 8, embeddings_initializer="normal", name="embedding")
    real = keras.ops.cast(keras.ops.not_equal(source, 0), "float32")[..., None]
    count = keras.ops.sum(real, axis=1, keepdims=True)
    mean = keras.ops.sum(embedding(source) * real, axis=1, keepdims=True) / count
    hidden = Dropout(dropout, name="dropout")(mean + embedding(target))
    return keras.Model([source, target], keras.layers.Dense(size, name="logits")(hidden))


def transformer(size=20, dropout=0.0):
    """One layer of each kind."""
    sizes = {"num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2}
    return Transformer(vocabulary_size=size, dropout=dropout, **sizes)


def shaken(random, layer, *inputs, spread=0.1, **named):
    """Build a layer on inputs and shake all its weights: a gain of 1 or a bias of 0 may hide a
    mistake.
    """
    layer(*inputs, **named)
    layer.set_weights([random.normal(weight, spread) for weight in layer.get_weights()])
    return layer


class Reports(keras.callbacks.Callback):
    """Records the report of each step."""

    def __init__(self):
        super().__init__()
        self.steps = []

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append(dict(logs))


@contextlib.contextmanager
def eagerly():
    """Run each `tf.function` as plain Python, and trace nothing."""
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


@contextlib.contextmanager
def eager_training():
    """Let short runs of a small model trace neither training nor validation. Not for decoding: an
    eager search takes longer than tracing its graph.
    """
    with eagerly(), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        # The functions of tf.data stay graphs.
        warnings.filterwarnings("ignore", "Even though the `tf.config")
        patch.setattr(TrainFunction, "_of_shape", lambda f, *_: (f._add_all, f._update_all))
        yield
