"""Checkpoints are written whole or not at all; damage is reported; which of them are averaged."""

import contextlib
import errno
import math
from unittest import mock

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small_model import small_model

from keras_transformer.training import averaging, checkpoint
from keras_transformer.training.loss import LabelSmoothedCrossEntropy

PROGRESS = '{"step": 1, "seconds": 0.5}'


def model_in_training(seed=0, size=12):
    keras.utils.set_random_seed(seed)
    model = small_model(size, dropout=0.5)
    model.compile(
        optimizer=keras.optimizers.Adam(0.01), loss=LabelSmoothedCrossEntropy(0.1), run_eagerly=True
    )
    model.optimizer.build(model.trainable_variables)
    return model


def train(model, steps):
    ids = np.random.default_rng(0).integers(4, 12, (3, 4, 5), dtype=np.int32)
    for _ in range(steps):
        model.train_on_batch((ids[0], ids[1]), ids[2])


def state(model):
    """Every number that decides how training continues, as bytes."""
    return [
        np.asarray(variable).tobytes()
        for variable in [*model.variables, *model.optimizer.variables]
    ]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The checkpoint of a run of two steps. That a restored run ends as if it had never stopped is
    a law of test_optimizer.py and test_fit.py.
    """
    path, model = checkpoint.path_of(tmp_path_factory.mktemp("run"), 2), model_in_training()
    train(model, 2)
    checkpoint.save(path, model, {"step": 2, "seconds": 1.5})
    return path


@pytest.fixture
def small(tmp_path):
    """A small archive."""
    path = checkpoint.path_of(tmp_path, 1)
    checkpoint.write_archive(
        path, {"weights/a": np.arange(6, dtype=np.float32), "progress": np.array(PROGRESS)}
    )
    return path


def test_weights_alone_are_loaded_without_touching_the_optimizer(saved):
    model = model_in_training(seed=1)
    slots = [np.asarray(variable) for variable in model.optimizer.variables]
    checkpoint.load_weights(saved, model)
    weights = checkpoint.weights_of(saved)
    assert set(weights) == {f"weights/{variable.path}" for variable in model.weights}
    for variable in model.weights:
        np.testing.assert_array_equal(variable, weights[f"weights/{variable.path}"])
    for before, variable in zip(slots, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(before, variable)


def test_another_size_is_refused_by_name_and_nothing_is_set(saved):
    model = model_in_training(seed=1, size=13)
    before = state(model)
    message = rf"^{saved}: weights/\S+ has shape \(.*12.*\), the model expects \(.*13.*\)\.$"
    with pytest.raises(ValueError, match=message):
        checkpoint.restore(saved, model)
    assert state(model) == before


ANOTHER_OPTIMIZER = "Resume with the --optimizer and the --ema that the run began with."


@pytest.mark.parametrize(
    ("name", "array", "rest"),
    [
        ("optimizer/3", None, rf"comes from a model of another kind\. {ANOTHER_OPTIMIZER}$"),
        ("random/0", None, r"comes from a model of another kind\.$"),
        ("progress", None, r"comes from a model of another kind\.$"),
        ("optimizer/3", np.zeros(99), r"has shape \(99,\).*--optimizer and the --ema"),
    ],
)
def test_an_array_that_lacks_or_does_not_fit_is_refused_by_name(saved, tmp_path, name, array, rest):
    arrays = checkpoint.read_archive(saved)
    del arrays[name]
    message = rf"other\.npz lacks {name}: it {rest}"
    if array is not None:
        arrays[name] = array
        message = f"{name} {rest}"
    checkpoint.write_archive(tmp_path / "other.npz", arrays)
    with pytest.raises(ValueError, match=message):
        checkpoint.restore(tmp_path / "other.npz", model_in_training())


@pytest.mark.parametrize("failing", ["os.fsync", "os.replace", "numpy.savez"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(small, monkeypatch, failing):
    def fail(*arguments, **arrays):
        with contextlib.suppress(AttributeError):
            arguments[0].write(b"half of it")
        raise OSError("disk full")

    before = small.read_bytes()
    monkeypatch.setattr(failing, fail)
    with pytest.raises(OSError, match="disk full"):
        checkpoint.write_archive(small, {"weights/a": np.zeros(1000)})
    assert [path.name for path in small.parent.iterdir()] == [small.name]
    assert small.read_bytes() == before


def test_any_truncation_is_refused_by_name(small):
    whole = small.read_bytes()
    for length in range(0, len(whole), 7):
        small.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=rf"^{small} is damaged or no checkpoint"):
            checkpoint.read_archive(small)


def test_a_turned_bit_anywhere_is_refused_by_name_or_changes_no_array(small):
    """A bit of the directory can make it forget an array, which `restore` then misses, but never
    alter one.
    """
    expected = checkpoint.read_archive(small)
    whole = small.read_bytes()
    for place in range(len(whole)):
        turned = bytes([whole[place] ^ 1 << place % 8])
        small.write_bytes(whole[:place] + turned + whole[place + 1 :])
        try:
            actual = checkpoint.read_archive(small)
        except ValueError as error:
            assert str(error).startswith(f"{small} is damaged or no checkpoint")  # noqa: PT017
        else:
            assert all(part.tobytes() == expected[name].tobytes() for name, part in actual.items())


def test_a_header_without_an_end_is_refused_by_name(small):
    """The numbers of an array that is longer than 4 kB are checked behind its header."""
    checkpoint.write_archive(small, {"weights/a": np.zeros(2000)})
    whole = small.read_bytes()
    place = whole.index(b", }")
    small.write_bytes(whole[:place] + bytes(64) + whole[place + 64 :])
    with pytest.raises(ValueError, match=rf"^{small} is damaged or no checkpoint"):
        checkpoint.read_archive(small)


def test_the_newest_is_taken_and_a_damaged_one_is_reported_and_skipped(small):
    second, third = (checkpoint.path_of(small.parent, step) for step in (20, 100))
    second.write_bytes(small.read_bytes())
    reports = []
    assert checkpoint.read_newest(small.parent, reports.append)[0] == second
    # A disk that cannot be read, such as one of a network, does not mean damage.
    failing = mock.patch.object(np, "load", side_effect=OSError(errno.EIO, "Input/output error"))
    with failing, pytest.raises(OSError, match="Input/output error"):
        checkpoint.read_newest(small.parent, reports.append)[0]
    third.write_bytes(small.read_bytes()[:-10])
    assert checkpoint.read_newest(small.parent, reports.append)[0] == second
    [line] = reports
    assert line.startswith(f"{third} is damaged")
    assert line.endswith("Taking the one before.")
    small.unlink()
    second.write_bytes(b"")
    assert checkpoint.read_newest(small.parent, reports.append)[0] is None
    assert reports[-1].startswith(f"{second} is damaged")
    assert reports[-1].endswith("There is none before it.")
    assert checkpoint.read_newest(small.parent / "nowhere")[0] is None


def test_checkpoints_stand_in_the_order_of_their_steps_and_some_are_not_averaged(tmp_path):
    steps = [3, 20, 1000, 123_456_789, 9_876_543_210]
    paths = [checkpoint.path_of(tmp_path, step, averaged=step != 1000) for step in steps]
    for path in reversed(paths):
        path.write_bytes(b"")
    (tmp_path / ".step-000000004.npz.0a1b.tmp").write_bytes(b"left by a killed run")
    assert checkpoint.checkpoints(tmp_path) == paths
    assert [checkpoint.step_in(path) for path in paths] == steps
    assert checkpoint.checkpoints_to_average(tmp_path) == [*paths[:2], *paths[3:]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_not_saved(tmp_path, value):
    model = model_in_training()
    weight = model.trainable_variables[-1]
    array = np.asarray(weight).copy()
    array.flat[-1] = value
    weight.assign(array)
    message = rf"^weights/{weight.path} became NaN or infinite$"
    with pytest.raises(FloatingPointError, match=message):
        checkpoint.save(tmp_path / "x.npz", model, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "Make room."), (errno.EDQUOT, "Make room."), (errno.EACCES, "See to the disk")],
)
def test_making_room_is_the_remedy_for_a_full_disk_alone(number, remedy):
    assert checkpoint.remedy_of(OSError(number, "told")).startswith(remedy)


def test_two_weights_of_one_path_are_refused(tmp_path):
    inputs = keras.Input((2,))
    model = keras.Model(inputs, keras.layers.Dense(2, name="same")(inputs))
    model.compile(optimizer="sgd", loss="mse")
    model.layers[-1].bias._path = model.layers[-1].kernel.path
    with pytest.raises(ValueError, match=r"Give every layer a name of its own\.$"):
        checkpoint.save(tmp_path / "x.npz", model, {})


@pytest.mark.parametrize(
    "name",
    [
        *("last-best.npz", "step-abc.npz", "last-.npz", "step-1.npz", "last-000000007 (copy).npz"),
        *("step-00000000\u0663.npz", "step-0000000000007.npz", "step-000000007.npz.damaged"),
        *("my-last-000000007.npz", "last--00000007.npz", f"step-{'9' * 40}.npz"),
    ],
)
def test_files_with_other_names_are_no_checkpoints(small, name):
    (small.parent / name).write_bytes(small.read_bytes())
    assert checkpoint.checkpoints(small.parent) == [small]
    assert checkpoint.checkpoints_to_average(small.parent) == [small]


@pytest.mark.parametrize(
    "progress",
    [
        *("{}", "[1, 2]", "no JSON", "", "null", "[" * 100_000, '{"step": 2}', '{"seconds": 2}'),
        *(f'{{"step": {no}, "seconds": 1}}' for no in ('"2"', 2.5, [], -2, 10**30, "true")),
        *(f'{{"step": 2, "seconds": {no}}}' for no in ("NaN", '"x"')),
    ],
)
def test_malformed_progress_is_damage_and_the_checkpoint_before_is_taken(small, progress):
    newest = checkpoint.path_of(small.parent, 2)
    checkpoint.write_archive(newest, {"weights/a": np.zeros(2), "progress": np.array(progress)})
    reports = []
    assert checkpoint.read_newest(small.parent, reports.append)[0] == small
    [line] = reports
    assert line.startswith(f"{newest} is damaged: its progress must have a step and seconds.")
    assert line.endswith("Taking the one before.")
    with pytest.raises(ValueError, match="is damaged: its progress"):
        checkpoint.restore(newest, None)
    with pytest.raises(ValueError, match="is damaged: its progress"):
        checkpoint.progress_of(newest)


# The mean of checkpoints (section 6.1) against NumPy in float64.
FLOATS = st.floats(-(2.0**60), 2.0**60, width=32)


def write_weights(folder, *weights):
    """One checkpoint for each array of weights, with an optimizer's slot beside it."""
    paths = [checkpoint.path_of(folder, step) for step in range(len(weights))]
    for path, array in zip(paths, weights, strict=True):
        checkpoint.write_archive(
            path, {"weights/a/kernel": array, "optimizer/0": np.ones(2), "progress": np.array("{}")}
        )
    return paths


@settings(max_examples=30)
@given(stack=arrays(np.float32, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=FLOATS))
def test_the_mean_of_the_weights_alone_is_numpys_in_float64(tmp_path_factory, stack):
    paths = write_weights(tmp_path_factory.mktemp("mean"), *stack)
    [(name, mean)] = averaging.average(paths).items()
    assert (name, mean.dtype) == ("weights/a/kernel", np.float32)
    np.testing.assert_array_equal(mean, stack.astype(np.float64).mean(axis=0).astype(np.float32))


@pytest.mark.parametrize(
    "weights",
    [
        {"weights/a/kernel": np.zeros(4, np.float32)},
        {"weights/b/kernel": np.zeros(3, np.float32)},
        {},
    ],
)
def test_checkpoints_of_two_models_are_refused_by_name(tmp_path, weights):
    [first] = write_weights(tmp_path, np.zeros(3, np.float32))
    second = checkpoint.path_of(tmp_path, 1)
    checkpoint.write_archive(second, {**weights, "progress": np.array("{}")})
    with pytest.raises(ValueError, match=rf"^{first} and {second} are not of one model"):
        averaging.average([first, second])


def test_a_damaged_checkpoint_is_named_and_the_mean_of_the_others_is_there_without_it(tmp_path):
    paths = write_weights(tmp_path, *np.arange(3, dtype=np.float32)[:, None])
    paths[1].write_bytes(paths[1].read_bytes()[:-30])
    message = rf"^{paths[1]} is damaged or no checkpoint .*\. Remove it, or name another\.$"
    with pytest.raises(ValueError, match=message):
        averaging.average(averaging.last_checkpoints(tmp_path, 2))
    paths[1].unlink()
    assert averaging.average(averaging.last_checkpoints(tmp_path, 2))["weights/a/kernel"] == [1]
    with pytest.raises(ValueError, match=r"^There is no checkpoint to average\. Train first"):
        averaging.average([])


def test_the_number_with_the_lowest_loss_is_chosen(tmp_path):
    paths = write_weights(tmp_path, *(np.full(1, value, np.float32) for value in (9, 1, 3, 8)))
    means = []

    def measure(weights):
        [array] = weights.values()
        means.append(float(array[0]))
        paths[-len(means)].unlink()  # Each is read once.
        return abs(means[-1] - 4)

    # Means of the last 1, 2, 3, 4: 8, 5.5, 4, 5.25.
    assert averaging.best_number(paths, measure) == (3, [4.0, 1.5, 0.0, 1.25])
    assert means == [8.0, 5.5, 4.0, 5.25]


@pytest.mark.parametrize(
    ("losses", "number"),
    [([2.0], 1), ([1.0, 1.0], 1), ([math.nan, 2.0, 1.0], 3), ([math.inf, math.nan], 1)],
)
def test_of_equal_losses_the_fewest_checkpoints_win_and_nan_never_does(tmp_path, losses, number):
    paths = write_weights(tmp_path, *(np.zeros(1, np.float32) for _ in losses))
    remaining = iter(losses)
    assert averaging.best_number(paths, lambda weights: next(remaining))[0] == number
