"""A run and its export decode by the flags of the training. What an export with rounded weights is
measured on.
"""

import json
import pathlib
import shutil

import pytest
from small_model import eagerly

from keras_transformer.decoding.options import BEAM_SIZE
from keras_transformer.evaluation import metrics
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks.translation.task import MEASURED, Translation
from pipelines import corpora

RELEASE = pathlib.Path(__file__).parents[2] / "fixtures" / "release_0_5"
SOURCES = json.loads((RELEASE / "outputs.json").read_text(encoding="utf-8"))["sources"]
DECODING = {"beam_size": 2, "length_penalty": 0.0, "max_length": "3"}


@pytest.fixture
def folder(tmp_path):
    """A run that was trained with flags of decoding."""
    folder = RunFolder(shutil.copytree(RELEASE / "run", tmp_path / "run"))
    folder.description.write_text(json.dumps({**folder.read_description(), "decoding": DECODING}))
    return folder


def options_of(path, **options):
    """The `DecodingOptions` of a run's translator."""
    return Translator.load(path, **options)._model._module.options


def test_a_run_decodes_as_it_was_trained_to_where_no_option_overrides_it(folder):
    remembered = options_of(folder.path)
    assert remembered == options_of(RELEASE / "run", **DECODING) != options_of(RELEASE / "run")
    expected = options_of(RELEASE / "run", **DECODING | {"beam_size": 3})
    assert options_of(folder.path, beam_size=3) == expected != remembered


def test_the_export_of_a_run_decodes_as_it_remembers(folder):
    values = {"precision": "float32", "beam_size": None, "length_penalty": 0.3, "samples": 0}
    options = Translation.reload(folder, values).options
    assert (options.beam_size, options.length_penalty, options.max_length) == (2, 0.3, "3")


@pytest.mark.parametrize("beam", [2, 5])
def test_the_remembered_beam_bounds_the_hypotheses(folder, beam):
    description = {**folder.read_description(), "decoding": {"beam_size": beam, "max_length": "3"}}
    folder.description.write_text(json.dumps(description))
    translator = Translator.load(folder.path, num_hypotheses=beam)
    if beam > BEAM_SIZE:
        with eagerly():
            assert [*map(len, translator.translate_in_detail(SOURCES[:1]))] == [beam]
    with pytest.raises(ValueError, match=rf"must lie in 1\.\.beam_size={beam}\. Received"):
        Translator.load(folder.path, num_hypotheses=beam + 1)


@pytest.mark.parametrize(
    ("decoding", "message"),
    [
        (7, r"`decoding` of .*model\.json must be an object\. Received: 7\. Copy it again"),
        ({"beam_sise": 2}, r"`decoding` of model\.json must hold .* Received: {.*Copy the file"),
    ],
)
def test_damaged_decoding_options_are_refused(folder, decoding, message):
    folder.description.write_text(json.dumps({**folder.read_description(), "decoding": decoding}))
    with pytest.raises(ValueError, match=message):
        Translator.load(folder.path)


# What a translator's export with rounded weights is measured on.
CORPUS = {"name": "reverse", "source_language": "a", "target_language": "b"}


def test_an_export_is_measured_on_the_test_split_with_the_run_s_tokenizer():
    description = {"corpus": CORPUS, "evaluation": {"tokenize": "char"}}
    sources, references, measure = Translation.held_out(description)
    test = corpora.load(**CORPUS).test
    assert list(sources) == list(test.sources[:MEASURED])
    assert list(references) == list(test.targets[:MEASURED])
    changed = [f"{line} a" for line in references]
    assert measure(changed, references) == metrics.score(changed, references, "char")
    assert measure(changed, references) != metrics.score(changed, references, "13a")


def test_the_tokenizer_is_the_language_s_where_the_run_names_none():
    [*_, measure] = Translation.held_out({"corpus": {**CORPUS, "target_language": "zh"}})
    assert "tok:zh" in measure(["a b"], ["a b"])["bleu_signature"]


def test_nothing_is_measured_without_a_corpus_or_its_files(tmp_path, caplog):
    assert Translation.held_out({}) is None
    assert caplog.text == ""
    files = {**CORPUS, "name": "text_files", "data_dir": str(tmp_path)}
    assert Translation.held_out({"corpus": files}) is None
    assert "BLEU of the export is not measured: the run was trained on text that is" in caplog.text
