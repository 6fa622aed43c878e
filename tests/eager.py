"""Graphs are for what is called often: a function that a test calls once or twice is sooner run
operation by operation.
"""

import contextlib
import warnings

import pytest
import tensorflow as tf

from keras_transformer.training.train_function import TrainFunction


@contextlib.contextmanager
def eagerly():
    """Let each `tf.function` run as the Python that it is, and trace nothing."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)


@contextlib.contextmanager
def eager_training():
    """Let runs of a few steps of a small model trace neither these nor what validates. Not for what
    decodes: a search takes longer so than its graph does to make.
    """
    with eagerly(), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        # The functions of tf.data stay graphs.
        warnings.filterwarnings("ignore", "Even though the `tf.config")
        patch.setattr(TrainFunction, "_of_shape", lambda one, *_: (one._add_all, one._update_all))
        yield
