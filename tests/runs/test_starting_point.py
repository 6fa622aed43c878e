"""What a new run learns of the model that it starts from."""

import pytest

from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.model_path import hyperparameters_of
from pipelines.whole_files import write_json

ROTARY = {"positions": "rotary"}


@pytest.mark.parametrize("named", ["", "averaged.npz", "checkpoints/step-000000001.npz"])
def test_a_run_tells_its_hyperparameters(tmp_path, named):
    write_json(RunFolder(tmp_path).description, {"hyperparameters": ROTARY})
    (tmp_path / "checkpoints").mkdir()
    for checkpoint in ("averaged.npz", "checkpoints/step-000000001.npz"):
        (tmp_path / checkpoint).touch()
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
