"""A `model.json` that is damaged or of another version is told in a line by what reads a run."""

import json

import pytest

from keras_transformer.inference.generator import Generator
from keras_transformer.inference.loading import load_trained
from keras_transformer.models import Hyperparameters
from keras_transformer.runs.folder import RunFolder
from keras_transformer.runs.model_path import ModelPath

OF_TEXT = Hyperparameters(9, num_layers=1, d_model=4, d_ff=4, num_heads=2).as_dict()
# What reads a run, its task and what its model.json has.
READERS = {
    "translation": (lambda path: load_trained(RunFolder(path)), OF_TEXT),
    "language_modelling": (Generator.load, OF_TEXT),
}


@pytest.fixture(params=list(READERS))
def refused(request, tmp_path):
    """Gives a function from a `model.json` to what reading a run with it raises."""
    reader, hyperparameters = READERS[request.param]

    def raised(description=None, **more):
        if description is None:
            description = {"task": request.param, "hyperparameters": {**hyperparameters, **more}}
        elif isinstance(description, dict):
            description = {"task": request.param, **description}
        (tmp_path / "model.json").write_text(json.dumps(description))
        with pytest.raises((ValueError, FileNotFoundError)) as error:
            reader(tmp_path)
        assert "\n" not in str(error.value)
        return str(error.value).replace(str(tmp_path), "RUN")

    return raised


def test_a_hyperparameter_of_another_version_is_named(refused):
    assert refused(gates=3) == (
        "RUN/model.json: the model was written by another version: this one does not know the "
        "hyperparameter gates. Use the version that wrote it, or train again."
    )
    # The control: without it the weights are looked for.
    assert refused() == "RUN holds no checkpoint yet. Train first."


@pytest.mark.parametrize("description", [{}, {"hyperparameters": [1]}])
def test_a_run_without_hyperparameters_is_told(refused, description):
    assert refused(description).startswith("RUN/model.json must have hyperparameters, the sizes")


@pytest.mark.parametrize(("content", "kind"), [([1], "a list"), ("x", "x"), (None, "null")])
def test_what_is_no_object_is_told(tmp_path, content, kind):
    (tmp_path / "model.json").write_text(json.dumps(content))
    for reader in (ModelPath(tmp_path, tmp_path).describe, RunFolder(tmp_path).read_description):
        with pytest.raises(ValueError, match=rf"must hold a JSON object\. Received: {kind}\."):
            reader()
