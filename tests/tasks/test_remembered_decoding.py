"""Law: a run decodes as its export does: it remembers how it was trained to."""

import json
import pathlib
import shutil

import pytest

from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks.translation import Translation
from keras_transformer.translator.translator import Translator

RELEASE = pathlib.Path(__file__).parents[1] / "fixtures" / "release_0_5"
SOURCES = json.loads((RELEASE / "outputs.json").read_text(encoding="utf-8"))["sources"]
GIVEN = {"beam_size": 2, "length_penalty": 0.0, "max_length": "3"}


@pytest.fixture
def folder(tmp_path):
    """A run that was trained with flags of decoding."""
    folder = RunFolder(shutil.copytree(RELEASE / "run", tmp_path / "run"))
    description = {**folder.read_description(), "decoding": GIVEN}
    folder.description.write_text(json.dumps(description))
    return folder


def test_a_run_translates_as_it_was_trained_to(folder):
    translations = Translator.load(folder.path).translate(SOURCES)
    assert translations == Translator.load(RELEASE / "run", **GIVEN).translate(SOURCES)
    longer = Translator.load(folder.path, max_length="+50").translate(SOURCES)
    asked = {**GIVEN, "max_length": "+50"}
    assert longer == Translator.load(RELEASE / "run", **asked).translate(SOURCES)


def test_control_a_run_that_remembers_nothing_translates_otherwise(folder):
    assert Translator.load(RELEASE / "run").translate(SOURCES) != Translator.load(
        folder.path
    ).translate(SOURCES)


def test_its_export_decodes_so_too(folder):
    values = {"precision": "float32", "beam_size": None, "length_penalty": 0.3, "samples": 0}
    options = Translation.reload(folder, values).module.options
    assert (options.beam_size, options.length_penalty, options.max_length) == (2, 0.3, "3")
