"""What a run takes over from the one that it starts from, and which flags contradict it."""

import pytest

from keras_transformer.models import Hyperparameters
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.inheritance import inherited
from keras_transformer.runs.model_path import hyperparameters_of
from keras_transformer.training import checkpoint
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
    assert hyperparameters_of(tmp_path) == {}
    write_json(RunFolder(tmp_path).description, {"task": "another program's"})
    assert hyperparameters_of(str(tmp_path)) == {}
