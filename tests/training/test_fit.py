"""A run ends at its limits, and goes on inside an epoch as if it had never stopped."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.models import Transformer
from keras_transformer.training import checkpoint, fit, strategy
from keras_transformer.training.callbacks import Checkpointing, StopAtLimit
from keras_transformer.training.optimizer import optimizer

STEPS_PER_EPOCH = 3


class Numbered:
    """An endless stream of batches, each told by its number."""

    def dataset(self, start, *replicas):
        ids = np.random.default_rng(7).integers(4, 20, (10, 2, 5)).astype("int32")
        numbered = tf.data.Dataset.range(start, 10**9).map(lambda number: tf.constant(ids)[number % 10])
        return numbered.map(lambda rows: ((rows, rows), rows))


def run(folder, *, last_step, minutes=math.inf):
    """Train in a folder as a new process would, and give the model and the epochs that were begun."""
    keras.utils.set_random_seed(3)
    model = Transformer(vocabulary_size=20, num_layers=1, d_model=8, d_ff=16, num_heads=2, dropout=0.2)
    fit.compile_model(model, optimizer(1e-3), label_smoothing=0.1)
    step, batches, stopwatch = fit.resume(model, folder)
    assert step == batches
    begun = []
    noting = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: begun.append((epoch, checkpoint.step_of(model))))
    saving = Checkpointing(folder, stopwatch, keep=2, minutes=math.inf)
    data_from = strategy.attach(model, strategy.make_strategy("one"), Numbered(), lambda step: step)
    fit.fit(model, data_from, STEPS_PER_EPOCH, last_step, [noting, saving, StopAtLimit(stopwatch, minutes, last_step)])
    return model, begun, step


def test_it_ends_at_the_last_step(tmp_path):
    model, begun, step = run(tmp_path, last_step=7)
    assert step == 0
    assert int(model.optimizer.iterations) == 7
    assert begun == [(0, 0), (1, 3), (2, 6)]


def test_a_callback_ends_it(tmp_path):
    model, begun, _ = run(tmp_path, last_step=7, minutes=0)
    assert int(model.optimizer.iterations) == 1
    assert begun == [(0, 0)]


@pytest.mark.parametrize("stop", [2, 3, 5])
def test_two_sessions_equal_one_bit_for_bit_and_keep_the_epochs_aligned(tmp_path, stop):
    run(tmp_path / "two", last_step=stop)
    resumed, begun, step = run(tmp_path / "two", last_step=8)
    whole, _, _ = run(tmp_path / "one", last_step=8)
    assert step == stop
    assert begun == [(stop // 3, stop), *((epoch, 3 * epoch) for epoch in range(stop // 3 + 1, 3))]
    assert all(np.array_equal(a, b) for a, b in zip(resumed.get_weights(), whole.get_weights(), strict=True))


def test_without_its_random_state_the_resumed_run_differs(tmp_path, monkeypatch):
    run(tmp_path / "two", last_step=4)
    state = checkpoint._state
    monkeypatch.setattr(checkpoint, "_state", lambda model: {n: v for n, v in state(model).items() if not n.startswith("random/")})
    resumed, _, _ = run(tmp_path / "two", last_step=8)
    monkeypatch.undo()
    whole, _, _ = run(tmp_path / "one", last_step=8)
    assert not all(np.array_equal(a, b) for a, b in zip(resumed.get_weights(), whole.get_weights(), strict=True))
