"""What a run takes over from the one that it starts from or resumes, and what differs."""

import types

import pytest

from keras_transformer.models import Hyperparameters
from keras_transformer.runs import run as runs
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.inheritance import inherited
from keras_transformer.runs.model_path import hyperparameters_of
from keras_transformer.tasks import TASKS, TRAINING
from keras_transformer.training import checkpoint
from pipelines import options
from pipelines.whole_files import write_json

SIZES = Hyperparameters(
    vocabulary_size=50, num_layers=2, d_model=16, norm="pre", dropout=0.3, num_heads=2
).as_dict()
DECODING = {"beam_size": 6}


@pytest.fixture
def values(tmp_path):
    """Those of a command that names its start alone."""
    defaults = Hyperparameters(vocabulary_size=37000).as_dict()
    other = {"init_from": str(tmp_path / "old"), "vocabulary_from": None}
    return {**defaults, **other, "model_dir": str(tmp_path / "new")}


def write(folder, **parts):
    write_json(RunFolder(folder).description, {"hyperparameters": SIZES, **parts})


def of(values, **given):
    return inherited({**values, **given}, given.keys(), lambda values: "")


def test_sizes_and_variants_are_taken_and_what_training_chooses_is_not(values, tmp_path):
    write(tmp_path / "old")
    found = of(values)
    assert [found[name] for name in ("num_layers", "d_model", "norm")] == [2, 16, "pre"]
    assert found["dropout"] == 0.1
    # What was learned here learns another vocabulary.
    assert (found["vocabulary_size"], found["vocabulary_from"]) == (37000, None)
    assert "decoding" not in found
    assert of({**values, "init_from": None}) == {**values, "init_from": None}


def test_of_an_imported_one_vocabulary_and_decoding_are_taken_too(values, tmp_path):
    origin = {"imported": {"from": "x"}, "decoding": DECODING}
    write(tmp_path / "old", **origin)
    found = of(values)
    assert {name: found[name] for name in origin} == origin
    assert (found["vocabulary_size"], found["vocabulary_from"]) == (50, values["init_from"])
    # Who asks for a size learns another.
    other = of(values, vocabulary_size=80)
    assert (other["vocabulary_size"], other["vocabulary_from"]) == (80, None)
    write(tmp_path / "old", **{**origin, "decoding": {"source_language": "eng_Latn"}})
    with pytest.raises(ValueError, match=r"old translates between many languages .* no labels\."):
        of(values, vocabulary_size=80)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"d_model": 32}, r"--d_model must be 16, .* Received: d_model=32\. Leave it out"),
        ({"tie_embeddings": "none"}, r"--tie_embeddings must be three_way, "),
        ({"num_layers": 3}, r"--num_layers must be 2, .* Received: num_layers=3\. "),
        ({"architecture": "recurrent"}, r"the architecture transformer\. Received: recurrent\. "),
        # Controls.
        ({"d_model": 16}, None),
        ({"dropout": 0.2}, None),
        ({"norm": "post"}, None),
        # Heads may be added, and layers left.
        ({"block_size": 4}, None),
        ({"num_layers": 1}, None),
    ],
)
def test_a_flag_that_contradicts_is_refused_by_name(values, tmp_path, given, told):
    write(tmp_path / "old")
    if told is None:
        assert of(values, **given).items() >= given.items()
        return
    with pytest.raises(ValueError, match=told):
        of(values, **given)


def test_another_variant_of_an_imported_model_is_refused_too(values, tmp_path):
    write(tmp_path / "old", imported={"from": "x"})
    with pytest.raises(ValueError, match=r"--norm must be pre, .* Received: norm=post"):
        of(values, norm="post")


def test_a_run_that_goes_on_takes_its_own(values, tmp_path):
    asked = {"vocabulary_from": "elsewhere"}
    write(tmp_path / "new", imported={"from": "x"}, decoding=DECODING, asked=asked)
    with pytest.raises(FileNotFoundError, match="there is no model at"):
        of(values)
    checkpoint.write_archive(checkpoint.path_of(tmp_path / "new" / "checkpoints", 1), {})
    found = of(values)
    assert (found["d_model"], found["vocabulary_from"]) == (16, "elsewhere")
    # The folder refuses what contradicts, with all that differs.
    assert of(values, d_model=32)["d_model"] == 32


# What a starting point tells of itself.
ROTARY = {"positions": "rotary"}


@pytest.mark.parametrize("named", ["", "averaged.npz", "checkpoints/step-000000001.npz"])
def test_a_run_tells_its_hyperparameters(tmp_path, named):
    write_json(RunFolder(tmp_path).description, {"hyperparameters": ROTARY})
    (tmp_path / "checkpoints").mkdir()
    for name in ("averaged.npz", "checkpoints/step-000000001.npz"):
        (tmp_path / name).touch()
    assert hyperparameters_of(tmp_path / named) == ROTARY


@pytest.mark.parametrize("named", ["", "2"])
def test_a_saved_model_tells_its_hyperparameters(tmp_path, named):
    for version, found in (("1", {}), ("2", ROTARY)):
        write_json(tmp_path / version / "model.json", {"hyperparameters": found})
        (tmp_path / version / "saved_model.pb").write_bytes(b"")
    assert hyperparameters_of(tmp_path / named) == ROTARY


def test_what_says_nothing_of_itself_has_none(tmp_path):
    write_json(RunFolder(tmp_path).description, {"task": "another program's"})
    assert hyperparameters_of(str(tmp_path)) == {}


# What differs from the run that is resumed is refused or told, each once.
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


def resume(begun, values, **parts):
    task = types.SimpleNamespace(name="t", description=lambda: dict(parts), fixed=dict)
    return runs.describe(begun, task, values, SECTIONS)


def begin(folder, values, **parts):
    run = RunFolder(folder)
    assert resume(run, values, **parts) == []
    checkpoint.write_archive(checkpoint.path_of(run.checkpoints, 1), {})
    return run


@pytest.fixture
def begun(tmp_path):
    run = begin(tmp_path, BEGUN)
    assert resume(run, BEGUN) == []
    return run


@pytest.mark.parametrize(("was", "now"), [(1, 2), (1, None), (None, 1)])
@pytest.mark.parametrize("name", FIXED)
def test_what_was_decided_at_the_beginning_is_refused(tmp_path, name, was, now):
    was, now = (one and numbered(name, one) for one in (was, now))
    run = begin(tmp_path, {**BEGUN, name: was})
    with pytest.raises(ValueError) as raised:
        resume(run, {**BEGUN, name: now})
    assert f"holds another run: {name} was {was}, now {now}. Name another" in str(raised.value)
    assert resume(run, {**BEGUN, name: was}) == []


@pytest.mark.parametrize("name", TOLD)
def test_what_the_rest_of_the_run_does_otherwise_is_told(begun, name):
    before = BEGUN[name]
    now = numbered(name, 2)
    assert resume(begun, {**BEGUN, name: now}) == [f"{name} was {before}, now {now}"]
    assert resume(begun, {**BEGUN, name: now}) == []
    assert resume(begun, {**BEGUN, name: None}) == [f"{name} was {now}, now not given"]


@pytest.mark.parametrize("name", [*FIXED, *TOLD])
def test_a_run_that_was_killed_before_it_saved_anything_says_what_begins_otherwise(tmp_path, name):
    run = RunFolder(tmp_path)
    resume(run, BEGUN)
    was, now = BEGUN[name], numbered(name, 2)
    assert resume(run, {**BEGUN, name: now}) == [f"{name} was {was}, now {now}"]
    assert resume(run, {**BEGUN, name: now}) == []


@pytest.mark.parametrize("name", FREE)
def test_limits_and_paths_are_free(begun, name):
    assert resume(begun, {**BEGUN, name: numbered(name, 2)}) == []


def test_what_no_task_describes_says_what_may_change():
    of_training = {one.option.name for one in options.places(TRAINING)}
    # These two each task has in its description.
    described = {name for name in of_training if RESUMED[name] == options.DESCRIBED}
    assert described == {"seed", "batch_tokens"}


def test_the_end_of_a_cosine_is_told(begun):
    cosine = {**BEGUN, "schedule": "cosine"}
    assert resume(begun, cosine) == ["schedule was transformer, now cosine"]
    assert resume(begun, {**cosine, "max_steps": 2}) == ["max_steps was 1, now 2"]


def test_what_two_parts_say_is_told_once(tmp_path):
    run = begin(tmp_path, BEGUN, corpus={"seed": 1})
    with pytest.raises(ValueError, match=r"another run: seed was 1, now 5\. Name another"):
        resume(run, {**BEGUN, "seed": 5}, corpus={"seed": 5})


def test_a_run_of_an_earlier_version_goes_on(tmp_path):
    run = RunFolder(tmp_path)
    run.describe({"task": "t", "sizes": {"width": 3}, "training": {"batch_tokens": 1, "seed": 1}})
    checkpoint.write_archive(checkpoint.path_of(run.checkpoints, 1), {})
    # It had no flag of a later one, and may have had any optimizer.
    defaults = {one.option.name: one.option.default for one in options.places(SECTIONS)}
    values = {**BEGUN, **{name: defaults[name] for name in {*FIXED} - {*runs.OF_0_6}}}
    with pytest.raises(ValueError, match=r"another run: lora_alpha was None, now 4\. Name"):
        resume(run, {**values, "lora_alpha": 4}, sizes={"width": 3})
    assert resume(run, {**values, "vocabulary_size": 7}, sizes={"width": 3}) == []
