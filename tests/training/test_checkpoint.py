"""Checkpoints: the future of a run, bit for bit; whole or not at all; damage is told."""

import contextlib
import errno

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_transformer.models import Transformer
from keras_transformer.training import checkpoint
from keras_transformer.training.loss import LabelSmoothedCrossEntropy

PROGRESS = '{"step": 1, "seconds": 0.5}'


def model_in_training(seed=0, d_model=8):
    keras.utils.set_random_seed(seed)
    model = Transformer(
        vocabulary_size=12, num_layers=1, d_model=d_model, d_ff=16, num_heads=2, dropout=0.5
    )
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
    """Every number that decides how training goes on."""
    return [
        np.asarray(variable).tobytes()
        for variable in [*model.variables, *model.optimizer.variables]
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of three steps: the checkpoint after the second, and how it ended."""
    path, model = checkpoint.path_of(tmp_path_factory.mktemp("run"), 2), model_in_training()
    train(model, 2)
    checkpoint.save(path, model, {"step": 2, "seconds": 1.5})
    train(model, 1)
    return path, state(model)


@pytest.fixture
def small(tmp_path):
    """A small archive."""
    path = checkpoint.path_of(tmp_path, 1)
    checkpoint.write_archive(
        path, {"weights/a": np.arange(6, dtype=np.float32), "progress": np.array(PROGRESS)}
    )
    return path


def test_a_restored_run_ends_as_the_uninterrupted_one_to_the_last_bit(run):
    path, ended = run
    model = model_in_training(seed=1)
    assert checkpoint.restore(path, model) == {"step": 2, "seconds": 1.5}
    assert int(model.optimizer.iterations) == 2
    train(model, 1)
    assert state(model) == ended


def test_weights_alone_are_loaded_without_touching_the_optimizer(run):
    path, _ = run
    model = model_in_training(seed=1)
    slots = [np.asarray(variable) for variable in model.optimizer.variables]
    checkpoint.load_weights(path, model)
    saved = checkpoint.weights_of(path)
    assert set(saved) == {f"weights/{variable.path}" for variable in model.weights}
    for variable in model.weights:
        np.testing.assert_array_equal(variable, saved[f"weights/{variable.path}"])
    for before, variable in zip(slots, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(before, variable)


def test_another_size_is_refused_by_name_and_nothing_is_set(run):
    path, _ = run
    model = model_in_training(seed=1, d_model=12)
    before = state(model)
    told = rf"^{path}: weights/\S+ has shape \(.*8.*\), the model expects \(.*12.*\)\.$"
    with pytest.raises(ValueError, match=told):
        checkpoint.restore(path, model)
    assert state(model) == before


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("optimizer/3", " Go on with the --optimizer and the --ema that the run was begun with."),
        ("random/0", ""),
        ("progress", ""),
    ],
)
def test_a_lacking_array_is_refused_by_name(run, tmp_path, name, remedy):
    arrays = checkpoint.read_archive(run[0])
    del arrays[name]
    checkpoint.write_archive(tmp_path / "lacking.npz", arrays)
    told = rf"lacking\.npz lacks {name}: it comes from a model of another make\.{remedy}$"
    with pytest.raises(ValueError, match=told):
        checkpoint.restore(tmp_path / "lacking.npz", model_in_training())


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


def flipped(path, places):
    """The file with one bit after another turned over."""
    whole = path.read_bytes()
    for place in places:
        path.write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        yield path


def test_a_turned_bit_anywhere_is_refused_by_name_or_changes_no_array(small):
    """A bit of the directory can make it forget an array, which `restore` then misses, but never
    alter one.
    """
    expected = checkpoint.read_archive(small)
    for path in flipped(small, range(len(small.read_bytes()))):
        try:
            found = checkpoint.read_archive(path)
        except ValueError as error:
            assert str(error).startswith(f"{path} is damaged or no checkpoint")  # noqa: PT017
        else:
            assert all(array.tobytes() == expected[name].tobytes() for name, array in found.items())


def test_a_header_without_an_end_is_refused_by_name(small):
    """The numbers of an array that is longer than 4 kB are checked behind its header."""
    checkpoint.write_archive(small, {"weights/a": np.zeros(2000)})
    whole = small.read_bytes()
    place = whole.index(b", }")
    small.write_bytes(whole[:place] + bytes(64) + whole[place + 64 :])
    with pytest.raises(ValueError, match=rf"^{small} is damaged or no checkpoint"):
        checkpoint.read_archive(small)


def test_the_newest_is_taken_and_a_damaged_one_is_told_and_passed_over(small):
    second, third = (checkpoint.path_of(small.parent, step) for step in (20, 100))
    second.write_bytes(small.read_bytes())
    said = []
    assert checkpoint.newest(small.parent, said.append) == second
    third.write_bytes(small.read_bytes()[:-10])
    assert checkpoint.newest(small.parent, said.append) == second
    [line] = said
    assert line.startswith(f"{third} is damaged")
    assert line.endswith("Taking the one before.")
    small.unlink()
    second.write_bytes(b"")
    assert checkpoint.newest(small.parent, said.append) is None
    assert said[-1].startswith(f"{second} is damaged")
    assert said[-1].endswith("There is none before it.")
    assert checkpoint.newest(small.parent / "nowhere") is None


def test_checkpoints_stand_in_the_order_of_their_steps(tmp_path):
    steps = [3, 20, 1000, 123_456_789, 9_876_543_210]
    for step in reversed(steps):
        checkpoint.path_of(tmp_path, step).write_bytes(b"")
    (tmp_path / ".step-000000004.npz.0a1b.tmp").write_bytes(b"left by a killed run")
    assert [checkpoint.step_in(path) for path in checkpoint.checkpoints(tmp_path)] == steps


def test_checkpoints_to_average_are_told_from_the_one_to_go_on_from(tmp_path):
    averaged = [checkpoint.path_of(tmp_path, step) for step in (3, 2000)]
    to_go_on = checkpoint.path_of(tmp_path, 40, averaged=False)
    for path in (*averaged, to_go_on):
        path.write_bytes(b"")
    assert checkpoint.checkpoints(tmp_path) == [averaged[0], to_go_on, averaged[1]]
    assert checkpoint.averaged_ones(tmp_path) == averaged
    assert [checkpoint.step_in(path) for path in (*averaged, to_go_on)] == [3, 2000, 40]


def test_slots_of_another_optimizer_are_refused_with_the_remedy(run, tmp_path):
    arrays = checkpoint.read_archive(run[0])
    arrays["optimizer/3"] = np.zeros(99)
    checkpoint.write_archive(tmp_path / "other.npz", arrays)
    with pytest.raises(
        ValueError, match=r"optimizer/3 has shape \(99,\).*--optimizer and the --ema"
    ):
        checkpoint.restore(tmp_path / "other.npz", model_in_training())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_are_not_saved(tmp_path, value):
    model = model_in_training()
    weight = model.trainable_variables[-1]
    array = np.asarray(weight).copy()
    array.flat[-1] = value
    weight.assign(array)
    with pytest.raises(
        FloatingPointError, match=rf"^weights/{weight.path} became NaN or infinite$"
    ):
        checkpoint.save(tmp_path / "x.npz", model, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "Make room."), (errno.EDQUOT, "Make room."), (errno.EACCES, "See to the disk")],
)
def test_only_where_there_is_no_room_room_is_the_remedy(number, remedy):
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
def test_only_names_of_ours_are_checkpoints(small, name):
    (small.parent / name).write_bytes(small.read_bytes())
    assert checkpoint.checkpoints(small.parent) == [small]
    assert checkpoint.averaged_ones(small.parent) == [small]


def write_progress(path, progress):
    checkpoint.write_archive(path, {"weights/a": np.zeros(2), "progress": np.array(progress)})


@pytest.mark.parametrize(
    "progress",
    [
        *("{}", "[1, 2]", "no JSON", "", "null", "[" * 100_000, '{"step": 2}', '{"seconds": 2}'),
        *(f'{{"step": {no}, "seconds": 1}}' for no in ('"2"', 2.5, [], -2, 10**30, "true")),
        *(f'{{"step": 2, "seconds": {no}}}' for no in ("NaN", '"x"')),
    ],
)
def test_a_progress_that_is_none_is_damage_and_the_one_before_is_taken(small, progress):
    newest = checkpoint.path_of(small.parent, 2)
    write_progress(newest, progress)
    said = []
    assert checkpoint.newest(small.parent, said.append) == small
    [line] = said
    assert line.startswith(f"{newest} is damaged: its progress must have a step and seconds.")
    assert line.endswith("Taking the one before.")
    with pytest.raises(ValueError, match="is damaged: its progress"):
        checkpoint.restore(newest, None)
    with pytest.raises(ValueError, match="is damaged: its progress"):
        checkpoint.progress_of(newest)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=300).map(lambda content: lambda whole: content),
        st.tuples(st.integers(0, 600), st.integers(0, 255)).map(
            lambda change: (
                lambda whole: whole[: change[0]] + bytes([change[1]]) + whole[change[0] + 1 :]
            )
        ),
        st.integers(0, 600).map(lambda length: lambda whole: whole[:length]),
    )
)
def test_a_damaged_checkpoint_is_told_or_makes_no_difference(small, damaged):
    newest = checkpoint.path_of(small.parent, 2)
    newest.write_bytes(damaged(small.read_bytes()))
    said = []
    found = checkpoint.newest(small.parent, said.append)
    if found == newest:
        assert not said
        assert checkpoint.progress_of(newest) == {"step": 1, "seconds": 0.5}
    else:
        assert found == small
        [line] = said
        assert line.startswith(str(newest))
        assert "\n" not in line
