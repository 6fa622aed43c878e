"""Runs that are limited by minutes: the checkpoints of a share of the end are averaged."""

import math

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from keras_transformer.training import averaging, checkpoint
from keras_transformer.training.checkpointing import Checkpointing, Window
from keras_transformer.training.ending import Ending, StopAtLimit


def train(model, stopwatch, saving, minutes, last_step=10**6, steps=7):
    """Train to a limit, and see to the end as `TrainingRun` does; steps count seconds."""
    ticking = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: setattr(
            stopwatch, "seconds", stopwatch.seconds + 1
        )
    )
    limit = StopAtLimit(Ending(model), stopwatch, minutes, last_step)
    data = np.zeros((steps, 1), np.float32)
    callbacks = [ticking, limit, saving]
    model.fit(data, data, batch_size=1, epochs=99, callbacks=callbacks, shuffle=False, verbose=0)
    saving.require_saved(model)
    saving.keep_end(checkpoint.step_of(model))


def steps_of(paths):
    return [checkpoint.step_in(path) for path in paths]


def windowed(folder, stopwatch, seconds, minutes=math.inf, keep=9, share=0.5, steps=math.inf):
    window = Window(seconds, share, 5, steps)
    return Checkpointing(folder, stopwatch, keep, minutes, window=window)


@pytest.mark.parametrize("minutes", [math.inf, 5 / 60])
def test_they_lie_evenly_in_the_share_of_the_end_and_the_last_weights_are_among_them(
    model, stopwatch, tmp_path, minutes
):
    """Those of the minutes are there to resume from alone."""
    train(model, stopwatch, windowed(tmp_path, stopwatch, 40, minutes), 40 / 60)
    assert steps_of(checkpoint.averaged_ones(tmp_path)) == [24, 28, 32, 36, 40]


@pytest.mark.parametrize(("last_step", "averaged"), [(10, [10]), (30, [24, 28, 30])])
def test_a_run_that_ends_before_its_minutes_averages_its_last_weights_too(
    model, stopwatch, tmp_path, last_step, averaged
):
    saving = windowed(tmp_path, stopwatch, 40)
    train(model, stopwatch, saving, 40 / 60, last_step)
    assert steps_of(checkpoint.averaged_ones(tmp_path)) == averaged


def test_a_limit_of_steps_that_comes_first_has_the_window_at_its_end(model, stopwatch, tmp_path):
    train(model, stopwatch, windowed(tmp_path, stopwatch, 40, steps=20), 40 / 60, 20)
    assert steps_of(checkpoint.averaged_ones(tmp_path)) == [12, 14, 16, 18, 20]


def test_more_minutes_move_the_window_and_what_was_written_before_it_is_averaged_no_more(
    model, stopwatch, tmp_path
):
    train(model, stopwatch, windowed(tmp_path, stopwatch, 40), 40 / 60)
    train(model, stopwatch, windowed(tmp_path, stopwatch, 80), 80 / 60)
    assert steps_of(checkpoint.averaged_ones(tmp_path)) == [48, 56, 64, 72, 80]


def test_a_session_that_ends_within_the_window_keeps_what_it_wrote_there(
    model, stopwatch, tmp_path
):
    train_until(model, stopwatch, windowed(tmp_path, stopwatch, 40), 30)
    train(model, stopwatch, windowed(tmp_path, stopwatch, 40), 40 / 60)
    assert steps_of(checkpoint.averaged_ones(tmp_path)) == [24, 28, 32, 36, 40]


def train_until(model, stopwatch, saving, step):
    """Train as far as a kill would let it: nothing is seen to at the end."""
    saving.keep_end = lambda step: None
    train(model, stopwatch, saving, 40 / 60, step)


@given(st.floats(1e-6, 1), st.integers(1, 30), st.floats(0, 1, exclude_max=True))
def test_the_places_of_a_window_lie_in_it(share, count, done):
    window = Window(60, share, count)
    places = []
    while (due := window.next_after(done)) < math.inf:
        places.append(due)
        done = due
    assert len(places) <= count - 1
    assert all(window.begin <= place < 1 for place in places)
    assert places == sorted(set(places))
    assert window.begin >= 1 - share - 1e-6


def test_the_paper_s_share_gives_the_paper_s_intervals():
    def minutes_between(hours, window):
        return round((1 - window.begin) / (window.count - 1) * hours * 60, 1)

    assert minutes_between(12, Window(12 * 3600, 0.0694, 5)) == 10
    assert minutes_between(84, Window(84 * 3600, 0.0397, 20)) == 10


def test_an_end_that_cannot_be_written_is_refused_and_tried_once_more(
    model, stopwatch, tmp_path, monkeypatch
):
    said = []
    saving = Checkpointing(tmp_path, stopwatch, 9, math.inf, report=said.append)
    write = checkpoint.write_archive

    def full(path, arrays):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(checkpoint, "write_archive", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*last-000000007\.npz'"):
        train(model, stopwatch, saving, 7 / 60)
    assert len(said) == 1
    monkeypatch.setattr(checkpoint, "write_archive", write)
    saving.require_saved(model)
    assert steps_of(checkpoint.checkpoints(tmp_path)) == [7]


# The mean of checkpoints (section 6.1) against NumPy in float64.
FLOATS = st.floats(-(2.0**60), 2.0**60, width=32)


def write(folder, *weights):
    """One checkpoint for each array of weights, with an optimizer's slot beside it."""
    paths = [checkpoint.path_of(folder, step) for step in range(len(weights))]
    for path, array in zip(paths, weights, strict=True):
        checkpoint.write_archive(
            path, {"weights/a/kernel": array, "optimizer/0": np.ones(2), "progress": np.array("{}")}
        )
    return paths


@settings(max_examples=30, deadline=None)
@given(stack=arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=FLOATS))
def test_the_mean_of_the_weights_alone_is_numpys_in_float64(tmp_path_factory, stack):
    [(name, mean)] = averaging.average(write(tmp_path_factory.mktemp("mean"), *stack)).items()
    assert (name, mean.dtype) == ("weights/a/kernel", np.float32)
    np.testing.assert_array_equal(mean, stack.astype(np.float64).mean(axis=0).astype(np.float32))


@pytest.mark.parametrize(
    "other",
    [
        {"weights/a/kernel": np.zeros(4, np.float32)},
        {"weights/b/kernel": np.zeros(3, np.float32)},
        {},
    ],
)
def test_checkpoints_of_two_models_are_refused_by_name(tmp_path, other):
    [first] = write(tmp_path, np.zeros(3, np.float32))
    second = checkpoint.path_of(tmp_path, 1)
    checkpoint.write_archive(second, {**other, "progress": np.array("{}")})
    with pytest.raises(ValueError, match=rf"^{first} and {second} are not of one model"):
        averaging.average([first, second])


def test_no_checkpoint_is_refused():
    with pytest.raises(ValueError, match=r"^There is no checkpoint to average\. Train first"):
        averaging.average([])


def test_the_number_with_the_lowest_loss_is_chosen(tmp_path):
    paths = write(tmp_path, *(np.full(1, value, np.float32) for value in (9, 1, 3, 8)))
    seen = []

    def measure(weights):
        [array] = weights.values()
        seen.append(float(array[0]))
        return abs(seen[-1] - 4)

    # Means of the last 1, 2, 3, 4: 8, 5.5, 4, 5.25.
    assert averaging.best_number(paths, measure) == (3, [4.0, 1.5, 0.0, 1.25])
    assert seen == [8.0, 5.5, 4.0, 5.25]


@pytest.mark.parametrize(
    ("losses", "number"),
    [([2.0], 1), ([1.0, 1.0], 1), ([math.nan, 2.0, 1.0], 3), ([math.inf, math.nan], 1)],
)
def test_equal_losses_take_the_fewest_and_what_is_no_number_is_not_chosen(tmp_path, losses, number):
    paths = write(tmp_path, *(np.zeros(1, np.float32) for _ in losses))
    given = iter(losses)
    assert averaging.best_number(paths, lambda weights: next(given))[0] == number
