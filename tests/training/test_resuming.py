"""What differs from the run that is resumed is refused or told, each once."""

import types

import pytest

from keras_transformer.runs import run as runs
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks import TASKS, TRAINING
from keras_transformer.training import checkpoint
from pipelines import options

SECTIONS = (*TRAINING, *(one for task in TASKS.values() for one in task.options))
RESUMED = {one.option.name: one.option.setting.resumed for one in options.places(SECTIONS)}
FIXED, TOLD, FREE = (
    [name for name, kind in RESUMED.items() if kind == wanted]
    for wanted in (options.FIXED, options.TOLD, options.FREE)
)
LISTS = {one.option.name for one in options.places(SECTIONS) if one.option.type is list}


def numbered(name, number):
    """A value of an option."""
    return [str(number)] if name in LISTS else number


BEGUN = {name: numbered(name, 1) for name in (*FIXED, *TOLD, *FREE)}
BEGUN["schedule"] = "transformer"
BEGUN |= {"seed": 1, "batch_tokens": 1}


def resume(folder, values, **parts):
    task = types.SimpleNamespace(name="t", description=lambda: dict(parts), fixed=dict)
    return runs.describe(folder, task, values, SECTIONS)


@pytest.fixture
def folder(tmp_path):
    run = RunFolder(tmp_path)
    assert resume(run, BEGUN) == []
    checkpoint.write_archive(checkpoint.path_of(run.checkpoints, 1), {})
    assert resume(run, BEGUN) == []
    return run


@pytest.mark.parametrize("name", FIXED)
def test_what_was_decided_at_the_beginning_is_refused(folder, name):
    was, now = numbered(name, 1), numbered(name, 2)
    with pytest.raises(ValueError) as raised:
        resume(folder, {**BEGUN, name: now})
    assert f"holds another run: {name} was {was}, now {now}. Name another" in str(raised.value)
    assert resume(folder, BEGUN) == []


@pytest.mark.parametrize("name", TOLD)
def test_what_the_rest_of_the_run_does_otherwise_is_told(folder, name):
    before = BEGUN[name]
    now = numbered(name, 2)
    assert resume(folder, {**BEGUN, name: now}) == [f"{name} was {before}, now {now}"]
    assert resume(folder, {**BEGUN, name: now}) == []
    assert resume(folder, {**BEGUN, name: None}) == [f"{name} was {now}, now not given"]


@pytest.mark.parametrize("name", [*FIXED, *TOLD])
def test_a_run_that_was_killed_before_it_saved_anything_says_what_begins_otherwise(tmp_path, name):
    run = RunFolder(tmp_path)
    resume(run, BEGUN)
    was, now = BEGUN[name], numbered(name, 2)
    assert resume(run, {**BEGUN, name: now}) == [f"{name} was {was}, now {now}"]
    assert resume(run, {**BEGUN, name: now}) == []


@pytest.mark.parametrize("name", FREE)
def test_limits_and_paths_are_free(folder, name):
    assert resume(folder, {**BEGUN, name: numbered(name, 2)}) == []


def test_what_no_task_describes_says_what_may_change():
    of_training = {one.option.name for one in options.places(TRAINING)}
    # These two each task has in its description.
    described = {name for name in of_training if RESUMED[name] == options.DESCRIBED}
    assert described == {"seed", "batch_tokens"}


def test_the_end_of_a_cosine_is_told(folder):
    cosine = {**BEGUN, "schedule": "cosine"}
    assert resume(folder, cosine) == ["schedule was transformer, now cosine"]
    assert resume(folder, {**cosine, "max_steps": 2}) == ["max_steps was 1, now 2"]


def test_what_two_parts_say_is_told_once(tmp_path):
    run = RunFolder(tmp_path)
    resume(run, BEGUN, corpus={"seed": 1})
    checkpoint.write_archive(checkpoint.path_of(run.checkpoints, 1), {})
    with pytest.raises(ValueError, match=r"another run: seed was 1, now 5\. Name another"):
        resume(run, {**BEGUN, "seed": 5}, corpus={"seed": 5})


def test_a_run_of_an_earlier_version_goes_on(tmp_path):
    run = RunFolder(tmp_path)
    run.describe({"task": "t", "sizes": {"width": 3}, "training": {"batch_tokens": 1, "seed": 1}})
    checkpoint.write_archive(checkpoint.path_of(run.checkpoints, 1), {})
    assert resume(run, {**BEGUN, "vocabulary_size": 7}, sizes={"width": 3}) == []
