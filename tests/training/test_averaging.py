"""The mean of checkpoints (section 6.1) against NumPy in float64."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from keras_transformer.training import averaging, checkpoint

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
@given(array=arrays(np.float32, (2, 3), elements=FLOATS), count=st.integers(1, 6))
def test_the_mean_of_equal_checkpoints_is_itself_to_the_last_bit(tmp_path_factory, array, count):
    mean = averaging.average(write(tmp_path_factory.mktemp("equal"), *[array] * count))
    np.testing.assert_array_equal(mean["weights/a/kernel"], array)
    assert mean["weights/a/kernel"].dtype == np.float32


@settings(max_examples=30, deadline=None)
@given(stack=arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=FLOATS))
def test_the_mean_is_numpys_in_float64(tmp_path_factory, stack):
    mean = averaging.average(write(tmp_path_factory.mktemp("mean"), *stack))
    np.testing.assert_array_equal(
        mean["weights/a/kernel"], stack.astype(np.float64).mean(axis=0).astype(np.float32)
    )


def test_control_float32_would_lose_what_float64_keeps(tmp_path):
    stack = np.array([[2.0**24], [1.0], [1.0], [2.0]], np.float32)
    mean = averaging.average(write(tmp_path, *stack))["weights/a/kernel"]
    assert mean == (2.0**24 + 4) / 4
    assert mean != (((stack[0] + stack[1]) + stack[2]) + stack[3]) / np.float32(4)


def test_the_weights_alone_are_averaged(tmp_path):
    mean = averaging.average(write(tmp_path, np.zeros(3, np.float32), np.ones(3, np.float32)))
    [(name, array)] = mean.items()
    assert (name, array.tolist()) == ("weights/a/kernel", [0.5, 0.5, 0.5])


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
