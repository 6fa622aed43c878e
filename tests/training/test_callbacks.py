"""What watches over a run: divergence, limits, checkpoints, validation."""

import json
import math
import types

import keras
import numpy as np
import pytest

from keras_transformer.training import callbacks, checkpoint


@pytest.fixture
def model():
    """Two weights, and updates that count."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, name="dense")])
    model.compile(optimizer=keras.optimizers.SGD(0.001), loss="mse", run_eagerly=True)
    return model


@pytest.fixture
def stopwatch():
    """A stopwatch that is set by hand."""
    return types.SimpleNamespace(seconds=0.0)


def fit(model, *watchers, epochs=2, steps=3):
    data = np.arange(steps, dtype=np.float32)[:, None]
    return model.fit(data, data, batch_size=1, epochs=epochs, callbacks=list(watchers), shuffle=False, verbose=0)


def steps_in(folder):
    return [int(path.stem.removeprefix("step-")) for path in checkpoint.checkpoints(folder)]


def test_a_stopwatch_goes_on_from_the_sessions_before(monkeypatch):
    clock = types.SimpleNamespace(monotonic=lambda: clock.now, now=1000.0)
    monkeypatch.setattr(callbacks, "time", clock)
    stopwatch = callbacks.Stopwatch(seconds=60.0)
    clock.now += 5
    assert stopwatch.seconds == 65.0


def test_divergence_stops_with_advice_before_anything_is_saved(model, stopwatch, tmp_path):
    model.layers[-1].bias.assign([np.inf])
    with pytest.raises(ValueError, match=r"^The loss became (inf|nan) at step 1: .*Lower --learning_rate_scale or raise --warmup_steps"):
        fit(model, callbacks.StopOnDivergence(), callbacks.Checkpointing(tmp_path, stopwatch, keep=2, minutes=0))
    assert steps_in(tmp_path) == []


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_is_divergence(model, loss):
    watcher = callbacks.StopOnDivergence()
    watcher.set_model(model)
    watcher.on_train_batch_end(0, {"loss": 3.5})
    with pytest.raises(ValueError, match=rf"The loss became {loss} at step 0"):
        watcher.on_train_batch_end(1, {"loss": loss})


def test_training_stops_at_the_last_step(model, stopwatch):
    fit(model, callbacks.StopAtLimit(stopwatch, math.inf, last_step=4), epochs=9)
    assert int(model.optimizer.iterations) == 4


def test_training_stops_when_the_minutes_are_over(model, stopwatch):
    ticking = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: setattr(stopwatch, "seconds", stopwatch.seconds + 30))
    fit(model, ticking, callbacks.StopAtLimit(stopwatch, minutes=2.5, last_step=math.inf), epochs=9)
    assert int(model.optimizer.iterations) == 5


def test_each_epoch_is_saved_and_the_last_k_are_kept(model, stopwatch, tmp_path):
    fit(model, callbacks.Checkpointing(tmp_path, stopwatch, keep=2, minutes=10), epochs=4)
    assert steps_in(tmp_path) == [9, 12]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000009.npz", "step-000000012.npz"]


def test_inside_an_epoch_it_saves_every_so_many_minutes_since_the_last_save(model, stopwatch, tmp_path):
    ticking = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: setattr(stopwatch, "seconds", stopwatch.seconds + 60))
    fit(model, ticking, callbacks.Checkpointing(tmp_path, stopwatch, keep=99, minutes=2), epochs=2, steps=5)
    assert steps_in(tmp_path) == [2, 4, 5, 7, 9, 10]


def test_a_checkpoint_holds_its_step_and_the_seconds_of_the_run(model, stopwatch, tmp_path):
    stopwatch.seconds = 12.5
    fit(model, callbacks.Checkpointing(tmp_path, stopwatch, keep=1, minutes=10), epochs=1)
    assert checkpoint.restore(checkpoint.newest(tmp_path), model) == {"step": 3, "batches": 3, "seconds": 12.5}


def test_validation_appends_a_json_line_an_epoch_and_reports_it(model, tmp_path):
    path, said = tmp_path / "history.jsonl", []
    path.write_text('{"epoch": 0}\n', encoding="utf-8")
    history = fit(model, callbacks.Validation(lambda measured: {"bleu": 31.5, "same": float(measured is model)}, path, said.append))
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["epoch"] for line in lines] == [0, 1, 2]
    assert [line["step"] for line in lines[1:]] == [3, 6]
    assert all((line["val_bleu"], line["val_same"]) == (31.5, 1.0) for line in lines[1:])
    assert [line["loss"] for line in lines[1:]] == pytest.approx(history.history["loss"])
    assert [line.split("  ")[:2] for line in said] == [["epoch 1", "step 3"], ["epoch 2", "step 6"]]
    assert all("val_bleu 31.5" in line for line in said)


def test_the_count_of_tokens_is_not_a_result(model, tmp_path):
    watcher = callbacks.Validation(lambda model: {}, tmp_path / "history.jsonl", lambda line: None)
    watcher.set_model(model)
    watcher.on_epoch_end(0, {"loss": 1.0, "tokens": 123.0})
    assert json.loads((tmp_path / "history.jsonl").read_text(encoding="utf-8")) == {"epoch": 1, "step": 0, "loss": 1.0}
