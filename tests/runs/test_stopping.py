"""A run that was stopped ends in the middle of its loop; the next one is not touched by that."""

import threading

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.runs.session import SavedModel, Stop, Stopped


class Endless(tf.Module):
    """A loop of as many steps as are asked for."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64, name="steps")])
    def count(self, steps):
        [done] = tf.while_loop(
            lambda done: done < steps[0], lambda done: [done + 1], [tf.constant(0, tf.int64)]
        )
        with tf.control_dependencies([tf.debugging.assert_positive(steps, message="no steps")]):
            return {"done": tf.identity(done)}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("endless")
    module = Endless()
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.count})
    model = SavedModel(folder)
    yield model
    model.close()


def run(model, steps, stop=None):
    return model.run("serving_default", {"steps": np.array([steps])}, stop)["done"]


def test_a_loop_without_an_end_is_stopped_and_the_next_run_is_right(model):
    for _ in range(5):
        stop = Stop()
        outcome = []

        def work(stop=stop, outcome=outcome):
            try:
                run(model, 2**62, stop)
            except Stopped:
                outcome.append("stopped")

        thread = threading.Thread(target=work)
        thread.start()
        stop.set()
        thread.join()
        assert outcome == ["stopped"]
        assert run(model, 3) == 3


def test_what_was_stopped_before_does_not_begin(model):
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        run(model, 2**62, stop)


def test_a_failure_is_told_and_not_that_the_run_ended(model):
    for _ in range(20):
        with pytest.raises(tf.errors.InvalidArgumentError, match="no steps"):
            run(model, 0)
