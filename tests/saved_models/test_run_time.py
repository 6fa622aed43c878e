"""A run of a SavedModel ends when its time is over, in the middle of a loop."""

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.saved_models.session import SavedModel


class Counting(tf.Module):
    """Counts to a number, one step of a loop at a time."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32, name="n")])
    def __call__(self, n):
        last = tf.reduce_max(n)
        [count] = tf.while_loop(lambda i: i < last, lambda i: [i + 1], [tf.constant(0)])
        return {"count": tf.fill(tf.shape(n), count)}


@pytest.fixture
def model(tmp_path):
    module = Counting()
    tf.saved_model.save(module, tmp_path / "1", signatures=module.__call__)
    model = SavedModel(tmp_path / "1")
    yield model
    model.close()


def counted(model, number, milliseconds=0):
    [count] = model.run("serving_default", {"n": np.array([number], "int32")}, milliseconds)[
        "count"
    ]
    return count


def test_it_ends_when_its_time_is_over_and_the_model_can_be_run_again(model):
    with pytest.raises(tf.errors.DeadlineExceededError, match="Timed out waiting"):
        counted(model, 2**31 - 1, milliseconds=50)
    assert counted(model, 7) == 7


def test_control_a_run_with_time_enough_ends_by_itself(model):
    assert counted(model, 1000, milliseconds=600_000) == 1000
