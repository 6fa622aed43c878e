"""What a run takes over from the one that it starts from or resumes, and what differs."""

import types

import pytest

from keras_transformer.models import Hyperparameters
from keras_transformer.runs import run as runs
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.inheritance import inherited
from keras_transformer.runs.model_path import ModelPath
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
    """Flag values of a command that gives --init_from alone."""
    defaults = Hyperparameters(vocabulary_size=37000).as_dict()
    start = {"init_from": str(tmp_path / "old"), "vocabulary_from": None}
    return {**defaults, **start, "model_dir": str(tmp_path / "new")}


def write(folder, **parts):
    write_json(RunFolder(folder).description, {"hyperparameters": SIZES, **parts})


def inherit(values, **typed):
    return inherited({**values, **typed}, typed.keys(), lambda values: "")


def test_sizes_and_variants_are_inherited_and_training_choices_are_not(values, tmp_path):
    write(tmp_path / "old")
    merged = inherit(values)
    assert [merged[name] for name in ("num_layers", "d_model", "norm")] == [2, 16, "pre"]
    assert merged["dropout"] == 0.1
    # A run that starts from no imported model learns a vocabulary.
    assert (merged["vocabulary_size"], merged["vocabulary_from"]) == (37000, None)
    assert "decoding" not in merged
    assert inherit({**values, "init_from": None}) == {**values, "init_from": None}


def test_vocabulary_and_decoding_of_an_imported_model_are_inherited_too(values, tmp_path):
    origin = {"imported": {"from": "x"}, "decoding": DECODING}
    write(tmp_path / "old", **origin)
    merged = inherit(values)
    assert {name: merged[name] for name in origin} == origin
    assert (merged["vocabulary_size"], merged["vocabulary_from"]) == (50, values["init_from"])
    # With --vocabulary_size a vocabulary is learned.
    resized = inherit(values, vocabulary_size=80)
    assert (resized["vocabulary_size"], resized["vocabulary_from"]) == (80, None)
    write(tmp_path / "old", **{**origin, "decoding": {"source_language": "eng_Latn"}})
    with pytest.raises(ValueError, match=r"old translates between many languages .* no labels\."):
        inherit(values, vocabulary_size=80)


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ({"d_model": 32}, r"--d_model must be 16, .* Received: d_model=32\. Leave it out"),
        ({"tie_embeddings": "none"}, r"--tie_embeddings must be three_way, "),
        ({"num_layers": 3}, r"--num_layers must be 2, .* Received: num_layers=3\. "),
        (
            {"block_size": 4, "lora_rank": 2},
            r"--block_size must be 1 with --lora_rank, .* Received: block_size=4\. Leave it out",
        ),
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
def test_a_flag_that_contradicts_is_refused_by_name(values, tmp_path, typed, message):
    write(tmp_path / "old")
    if message is None:
        assert inherit(values, **typed).items() >= typed.items()
        return
    with pytest.raises(ValueError, match=message):
        inherit(values, **typed)


def test_another_variant_of_an_imported_model_is_refused_too(values, tmp_path):
    write(tmp_path / "old", imported={"from": "x"})
    with pytest.raises(ValueError, match=r"--norm must be pre, .* Received: norm=post"):
        inherit(values, norm="post")


def test_a_resumed_run_takes_its_own_sizes(values, tmp_path):
    parts = {"decoding": DECODING, "asked": {"vocabulary_from": "elsewhere"}}
    write(tmp_path / "new", imported={"from": "x"}, **parts)
    with pytest.raises(FileNotFoundError, match="there is no model at"):
        inherit(values)
    checkpoint.write_archive(checkpoint.path_of(tmp_path / "new" / "checkpoints", 1), {})
    merged = inherit(values)
    assert (merged["d_model"], merged["vocabulary_from"]) == (16, "elsewhere")
    # RunFolder refuses the contradiction, and names all differences.
    assert inherit(values, d_model=32)["d_model"] == 32


# A starting point tells its hyperparameters.
ROTARY = {"positions": "rotary"}


@pytest.mark.parametrize("named", ["", "averaged.npz", "checkpoints/step-000000001.npz"])
def test_a_run_tells_its_hyperparameters(tmp_path, named):
    write_json(RunFolder(tmp_path).description, {"hyperparameters": ROTARY})
    (tmp_path / "checkpoints").mkdir()
    for name in ("averaged.npz", "checkpoints/step-000000001.npz"):
        (tmp_path / name).touch()
    assert ModelPath.of(tmp_path / named).describe()["hyperparameters"] == ROTARY


@pytest.mark.parametrize("named", ["", "2"])
def test_a_saved_model_tells_its_hyperparameters(tmp_path, named):
    for version, hyperparameters in (("1", {}), ("2", ROTARY)):
        write_json(tmp_path / version / "model.json", {"hyperparameters": hyperparameters})
        for graph in ("saved_model.pb", "decoder.onnx"):
            (tmp_path / version / graph).touch()
    model = ModelPath.of(tmp_path / named)
    assert (model.is_portable, model.describe()["hyperparameters"]) == (False, ROTARY)


# Options that differ from those of the resumed run are refused or reported, each once.
SECTIONS = (*TRAINING, *(section for task in TASKS.values() for section in task.options))
RESUMED = {place.option.name: place.option.setting.resumed for place in options.places(SECTIONS)}
FIXED, REPORTED, FREE = (
    [name for name, resumed in RESUMED.items() if resumed == policy]
    for policy in (options.FIXED, options.REPORTED, options.FREE)
)
LISTS = {place.option.name for place in options.places(SECTIONS) if place.option.type is list}


def numbered(name, number):
    """A value of an option."""
    if name == "vocabulary_from":
        return f"/{number}"
    return [str(number)] if name in LISTS else number


BEGUN = {name: numbered(name, 1) for name in (*FIXED, *REPORTED, *FREE)}
BEGUN["schedule"] = "transformer"
BEGUN |= {"seed": 1, "batch_tokens": 1}


def resume(begun, values, **parts):
    parts_of = {"description": lambda: dict(parts), "fixed": dict, "reported": dict}
    task = types.SimpleNamespace(name="t", **parts_of)
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


def with_each(names, number):
    """The values of the run, but for options that all have this number."""
    return {**BEGUN, **{name: number and numbered(name, number) for name in names}}


def changes(names, before, now):
    return sorted(f"{name} was {before[name]}, now {now[name]}" for name in names)


@pytest.mark.parametrize(("was", "now"), [(1, 2), (1, None), (None, 1)])
def test_fixed_options_that_changed_are_refused(tmp_path, was, now):
    before, changed = (with_each(FIXED, number) for number in (was, now))
    run = begin(tmp_path, before)
    with pytest.raises(ValueError, match=r"holds another run: .*\. Name another") as raised:
        resume(run, changed)
    named = str(raised.value).partition("run: ")[2].partition(". Name")[0]
    assert sorted(named.split("; ")) == changes(FIXED, before, changed)
    assert resume(run, before) == []


def test_the_vocabulary_s_origin_may_be_written_otherwise_and_moved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("origin", "another"):
        (tmp_path / name).mkdir()

    def resumed(path):
        return resume(run, {**BEGUN, "vocabulary_from": path})

    run = begin(tmp_path / "run", {**BEGUN, "vocabulary_from": "origin"})
    for same in ("origin", "./origin", str(tmp_path / "origin"), "another/../origin"):
        assert resumed(same) == []
    with pytest.raises(ValueError, match=r"vocabulary_from was /.*/origin, now /.*/another\. Name"):
        resumed("another")
    (tmp_path / "origin").rename("moved")
    assert resumed("moved") == [f"vocabulary_from was {tmp_path}/origin, now {tmp_path}/moved"]
    # Earlier versions wrote it as it was typed.
    description = run.read_description()
    write_json(run.description, {**description, "asked": {**BEGUN, "vocabulary_from": "moved"}})
    with pytest.raises(ValueError, match=r"vocabulary_from was moved, now /.*/another\. Name"):
        resumed("another")
    resumed("./moved")
    assert resumed("moved") == []


def test_changed_options_of_the_rest_of_the_run_are_reported_once(begun):
    changed = with_each(REPORTED, 2)
    assert sorted(resume(begun, changed)) == changes(REPORTED, BEGUN, changed)
    assert resume(begun, changed) == []
    not_given = dict.fromkeys(REPORTED, "not given")
    reported = resume(begun, with_each(REPORTED, None))
    assert sorted(reported) == changes(REPORTED, changed, not_given)


def test_a_run_killed_before_its_first_checkpoint_reports_what_changed(tmp_path):
    run = RunFolder(tmp_path)
    resume(run, BEGUN)
    changed = with_each([*FIXED, *REPORTED], 2)
    assert sorted(resume(run, changed)) == changes([*FIXED, *REPORTED], BEGUN, changed)
    assert resume(run, changed) == []


def test_limits_and_paths_may_change(begun):
    assert resume(begun, with_each(FREE, 2)) == []


def test_only_the_seed_and_the_batch_size_are_left_to_a_task_s_description():
    of_training = {place.option.name for place in options.places(TRAINING)}
    # Each task's description holds these two.
    described = {name for name in of_training if RESUMED[name] == options.DESCRIBED}
    assert described == {"seed", "batch_tokens"}


def test_a_changed_end_of_a_cosine_schedule_is_reported(begun):
    cosine = {**BEGUN, "schedule": "cosine"}
    assert resume(begun, cosine) == ["schedule was transformer, now cosine"]
    assert resume(begun, {**cosine, "max_steps": 2}) == ["max_steps was 1, now 2"]


def test_a_difference_in_two_parts_is_named_once(tmp_path):
    run = begin(tmp_path, BEGUN, corpus={"seed": 1})
    with pytest.raises(ValueError, match=r"another run: seed was 1, now 5\. Name another"):
        resume(run, {**BEGUN, "seed": 5}, corpus={"seed": 5})


def test_a_run_of_an_earlier_version_goes_on(tmp_path):
    run = RunFolder(tmp_path)
    run.describe({"task": "t", "sizes": {"width": 3}, "training": {"batch_tokens": 1, "seed": 1}})
    checkpoint.write_archive(checkpoint.path_of(run.checkpoints, 1), {})
    # It lacks the flags of later versions, and may have had any optimizer.
    defaults = {place.option.name: place.option.default for place in options.places(SECTIONS)}
    values = {**BEGUN, **{name: defaults[name] for name in {*FIXED} - {*runs.OF_0_6}}}
    with pytest.raises(ValueError, match=r"another run: lora_alpha was None, now 4\. Name"):
        resume(run, {**values, "lora_alpha": 4}, sizes={"width": 3})
    assert resume(run, {**values, "vocabulary_size": 7}, sizes={"width": 3}) == []
