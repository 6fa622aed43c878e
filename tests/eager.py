"""Graphs are for what is called often: a function that a test calls once or twice is sooner run
operation by operation.
"""

import contextlib

import tensorflow as tf


@contextlib.contextmanager
def eagerly():
    """Let each `tf.function` run as the Python that it is, and trace nothing."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)
