"""The best weights and the end of patience, over runs that are killed and go on."""

import errno
import json
import math
import types

import keras
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_transformer.training import checkpoint
from keras_transformer.training.ending import Ending
from keras_transformer.training.validation import BestSoFar, Validation, kept_step, validations

STEPS_PER_EPOCH = 10


class Run:
    """A run with fixed results whose only weight is its step, in a folder that outlives it."""

    def __init__(self, folder, results, monitor="bleu", patience=None, step=0):
        self.history, self.path = folder / "history.jsonl", folder / "best.npz"
        self.monitor, self.results, self.reports = monitor, results, []
        updates = keras.Variable(step, dtype="int32", trainable=False, name="a")
        optimizer = types.SimpleNamespace(iterations=updates, use_ema=False)
        parts = {"optimizer": optimizer, "weights": [updates]}
        self.model = types.SimpleNamespace(**parts, stop_training=False)
        self.best = BestSoFar(
            *(Ending(self.model), self.history, self.path, monitor, monitor == "bleu", step),
            *(patience, self.reports.append),
        )
        self.best.set_model(self.model)
        self.best.on_train_begin()

    @property
    def step(self):
        return int(self.model.optimizer.iterations)

    def validate(self, dies=False):
        """Train an epoch and validate; a run that dies does so between the line in the history and
        the best weights.
        """
        self.model.optimizer.iterations.assign_add(STEPS_PER_EPOCH)
        value = self.results[self.step // STEPS_PER_EPOCH - 1]
        line = {"epoch": 1, "step": self.step, "loss": 1.0, f"val_{self.monitor}": value}
        with open(self.history, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if not dies:
            self.best.on_epoch_end(0, {"loss": 1.0, f"val_{self.monitor}": value})

    def go_on(self):
        while not self.best.is_over and self.step < len(self.results) * STEPS_PER_EPOCH:
            self.validate()
        return self


def step_saved(path):
    return int(checkpoint.weights_of(path)["weights/a"]) if path.exists() else None


def outcome(run):
    return run.best.standing, run.step, step_saved(run.path)


@pytest.mark.parametrize(
    ("results", "patience", "best", "last"),
    [
        ([1, 3, 2], None, 20, 30),
        ([3, 3], None, 10, 20),
        ([math.nan, 0, math.nan], None, 20, 30),
        ([math.nan], None, None, 10),
        ([math.nan, math.inf, -7, math.nan], None, 30, 40),
        ([1, 2, 2, 1, 3, 4], 2, 20, 40),
        ([1, 2, 2, 1, 3, 2, 2, 2, 9], 3, 50, 80),
        ([5, 4], 1, 10, 20),
        ([math.nan, math.nan, 1], 2, None, 20),
        ([1, 2, 3], 1, 30, 30),
    ],
)
@pytest.mark.parametrize("monitor", ["bleu", "cross_entropy"])
def test_the_best_weights_are_kept_and_training_ends_when_patience_is_spent(
    tmp_path, monitor, results, patience, best, last
):
    results = results if monitor == "bleu" else [-result for result in results]
    run = Run(tmp_path, results, monitor, patience).go_on()
    assert step_saved(run.path) == run.best.standing.step == best
    assert run.step == last
    waited = (last - (best or 0)) // STEPS_PER_EPOCH
    assert run.best.standing.waited == waited
    assert run.model.stop_training == run.best.is_over == (waited == patience)
    assert len(run.reports) == run.best.is_over


def test_the_end_is_reported_with_the_best_result(tmp_path):
    assert Run(tmp_path, [31.25, 30.0], patience=1).go_on().reports == [
        "val_bleu has not improved for 1 validations; the best was 31.25 at step 10. Training ends."
    ]


RESULTS = st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, math.nan]), min_size=1, max_size=8)
# Each kill: how many validations after going on, whether it hits before the best weights are
# written, how many checkpoints are damaged.
KILLS = st.lists(
    st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3), st.booleans()), max_size=4
)


@settings(max_examples=75)
@given(
    results=RESULTS,
    patience=st.none() | st.integers(1, 4),
    monitor=st.sampled_from(["bleu", "cross_entropy"]),
    kills=KILLS,
)
@example(results=[1.0, 2.0, 1.0], patience=None, monitor="bleu", kills=[(1, True, 0, False)])
@example(
    results=[1.0, 3.0, 2.0, 2.0, 4.0, 1.0], patience=3, monitor="bleu", kills=[(5, False, 3, True)]
)
def test_a_killed_run_ends_as_one_that_is_not(tmp_path_factory, results, patience, monitor, kills):
    whole = Run(tmp_path_factory.mktemp("whole"), results, monitor, patience).go_on()
    folder, step = tmp_path_factory.mktemp("killed"), 0
    for count, dies, lost, cut in kills:
        run = Run(folder, results, monitor, patience, step)
        for remaining in range(count, 0, -1):
            if run.best.is_over or run.step == len(results) * STEPS_PER_EPOCH:
                break
            run.validate(dies=dies and remaining == 1)
        step = max(0, run.step - lost * STEPS_PER_EPOCH)
        if (
            cut and run.history.exists() and step < run.step
        ):  # a checkpoint is written before its line of the history
            with open(run.history, "a", encoding="utf-8") as file:
                file.write('{"epoch": 9, "step": 99, "va')
    assert outcome(Run(folder, results, monitor, patience, step).go_on()) == outcome(whole)


def test_a_full_disk_is_reported_and_training_goes_on(tmp_path, monkeypatch):
    def full_disk(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    run = Run(tmp_path, [1.0, 2.0, 3.0])
    run.validate()
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_archive", full_disk)
        run.validate()
    assert run.reports == [
        "the best weights, of step 20, could not be saved: [Errno 28] No space left on device. "
        "Training continues. Make room."
    ]
    assert step_saved(run.path) == 10
    assert step_saved(run.go_on().path) == 30


def write(path, *lines):
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")


def test_a_line_voids_those_of_its_step_and_later_ones_before_it(tmp_path):
    path = tmp_path / "history.jsonl"
    measured = [(10, 1.0), (20, 2.0), (30, 3.0), (20, 2.5), (40, 4.0)]
    write(path, *({"step": step, "val_bleu": value} for step, value in measured))
    assert validations(path, "val_bleu", 40) == [(10, 1.0), (20, 2.5), (40, 4.0)]
    assert validations(path, "val_bleu", 39) == [(10, 1.0), (20, 2.5)]
    assert validations(path, "val_bleu", 0) == []


def test_numbers_that_are_not_finite_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "history.jsonl"
    numbers = {"cross_entropy": 710.0, "perplexity": math.inf, "accuracy": math.nan}
    watcher = Validation(lambda model: numbers, path, lambda line: None)
    watcher.set_model(Run(tmp_path, [], step=10).model)
    watcher.on_epoch_end(0, {"loss": 1.0})
    assert validations(path, "val_perplexity", 10) == [(10, math.inf)]
    [(_, accuracy)] = validations(path, "val_accuracy", 10)
    assert math.isnan(accuracy)


def test_lines_without_a_result_are_skipped_and_a_cut_line_hides_none(tmp_path):
    path = tmp_path / "history.jsonl"
    good = {"step": 20, "val_bleu": 2.0}
    write(
        path,
        {"step": 10},
        "",
        "[1, 2]",
        "7",
        '{"step": 10, "val_bleu": null}',
        '{"step": 10, "val_' + json.dumps(good),
        '{"step": 30, "val_bl',
    )
    assert validations(path, "val_bleu", 99) == [(20, 2.0)]
    assert validations(tmp_path / "nowhere", "val_bleu", 99) == []


@pytest.mark.parametrize(
    "damage", [lambda path: path.unlink(), lambda path: path.write_bytes(path.read_bytes()[:50])]
)
def test_without_the_archive_the_best_is_sought_anew(tmp_path, damage):
    run = Run(tmp_path, [3.0, 2.0, 1.0]).go_on()
    damage(run.path)
    again = Run(tmp_path, [3.0, 2.0, 1.0, 0.5], step=30)
    assert again.reports == [
        f"{again.path} lacks the best weights of step 10, or is damaged: the search for the best "
        "starts again."
    ]
    assert step_saved(again.go_on().path) == 40


@pytest.mark.parametrize("logs", [None, {}, {"loss": 1.0, "val_cross_entropy": 2.0}])
def test_a_result_that_is_not_measured_is_refused_with_the_remedy(tmp_path, logs):
    run = Run(tmp_path, [])
    message = r"^`monitor`='bleu' needs val_bleu, which was not measured\. Received: (nothing|loss)"
    with pytest.raises(ValueError, match=message):
        run.best.on_epoch_end(0, logs)
    with pytest.raises(ValueError, match=r"`patience` must be at least 1 validation\. .*Pass None"):
        Run(tmp_path, [], patience=0)


def test_behind_validation_in_fit_it_keeps_the_weights_and_stops(tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, name="dense")])
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss="mse", run_eagerly=True)
    results, weights = iter([5.0, 7.0, 6.0, 6.5, 9.0]), []

    def measure(model):
        weights.append(model.get_weights())
        return {"bleu": next(results)}

    history, path = tmp_path / "history.jsonl", tmp_path / "best.npz"
    best = BestSoFar(
        Ending(model), history, path, "bleu", True, 0, patience=2, report=lambda line: None
    )
    data = np.arange(1.0, 4.0)[:, None]
    validating = Validation(measure, history, lambda line: None)
    callbacks = [validating, best]
    model.fit(data, data, batch_size=1, epochs=5, callbacks=callbacks, shuffle=False, verbose=0)
    assert len(weights) == 4
    checkpoint.load_weights(path, model)
    for actual, expected, last in zip(model.get_weights(), weights[1], weights[-1], strict=True):
        np.testing.assert_array_equal(actual, expected)
        assert not np.array_equal(expected, last)


def test_weights_that_another_measure_chose_are_not_the_best(tmp_path):
    first = Run(tmp_path, [3.0, 1.0], "cross_entropy").go_on()
    assert kept_step(first.path, "val_cross_entropy") == 20
    assert kept_step(first.path, "val_bleu") is None
    write(first.history, {"step": 10, "val_bleu": 9.0}, {"step": 20, "val_bleu": 2.0})
    again = Run(tmp_path, [9.0, 2.0], "bleu", step=20)
    assert again.best.standing.step is None
    assert "the search for the best starts again" in again.reports[0]
