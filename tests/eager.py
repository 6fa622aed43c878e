"""Eager execution: a function that a test calls once or twice is slower to trace than to run
operation by operation.
"""

import contextlib
import warnings

import pytest
import tensorflow as tf

from keras_transformer.training.train_function import TrainFunction


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
