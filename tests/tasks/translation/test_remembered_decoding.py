"""A run decodes as its export does: it remembers how it was trained to. What an export with rounded
weights is measured on.
"""

import json
import pathlib
import shutil

import pytest

from keras_transformer.decoding.options import BEAM_SIZE
from keras_transformer.evaluation import bleu
from keras_transformer.inference.translator import Translator
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks import task_class
from keras_transformer.tasks.score import DEFAULTS
from keras_transformer.tasks.translation.task import MEASURED, Translation
from pipelines import corpora

RELEASE = pathlib.Path(__file__).parents[2] / "fixtures" / "release_0_5"
SOURCES = json.loads((RELEASE / "outputs.json").read_text(encoding="utf-8"))["sources"]
GIVEN = {"beam_size": 2, "length_penalty": 0.0, "max_length": "3"}


@pytest.fixture
def folder(tmp_path):
    """A run that was trained with flags of decoding."""
    folder = RunFolder(shutil.copytree(RELEASE / "run", tmp_path / "run"))
    folder.description.write_text(json.dumps({**folder.read_description(), "decoding": GIVEN}))
    return folder


def options_of(path, **given):
    """The `DecodingOptions` of a run's translator."""
    return Translator.load(path, **given)._model._module.options


def test_a_run_translates_as_it_was_trained_to(folder):
    translations = Translator.load(folder.path).translate(SOURCES)
    assert translations == Translator.load(RELEASE / "run", **GIVEN).translate(SOURCES)
    # A control: a run that remembers nothing translates otherwise.
    assert translations != Translator.load(RELEASE / "run").translate(SOURCES)


@pytest.mark.parametrize("given", [{"max_length": "+50"}, {"beam_size": 3}])
def test_what_is_given_comes_before_what_is_remembered(folder, given):
    assert options_of(folder.path, **given) == options_of(RELEASE / "run", **{**GIVEN, **given})
    assert options_of(folder.path, **given) != options_of(folder.path)


def test_its_export_decodes_so_too(folder):
    values = {"precision": "float32", "beam_size": None, "length_penalty": 0.3, "samples": 0}
    options = Translation.reload(folder, values).options
    assert (options.beam_size, options.length_penalty, options.max_length) == (2, 0.3, "3")


@pytest.mark.parametrize("beam", [2, 5])
def test_as_many_hypotheses_are_given_as_its_own_search_has(folder, beam):
    description = {**folder.read_description(), "decoding": {"beam_size": beam}}
    folder.description.write_text(json.dumps(description))
    translator = Translator.load(folder.path, num_hypotheses=beam)
    if beam > BEAM_SIZE:
        assert [*map(len, translator.translate_in_detail(SOURCES[:1]))] == [beam]
    with pytest.raises(ValueError, match=rf"must lie in 1\.\.beam_size={beam}\. Received"):
        Translator.load(folder.path, num_hypotheses=beam + 1)


@pytest.mark.parametrize("kept", [7, {"beam_sise": 2}])
def test_a_damaged_memory_is_told(folder, kept):
    folder.description.write_text(json.dumps({**folder.read_description(), "decoding": kept}))
    with pytest.raises(ValueError, match=r"`decoding` of model\.json must hold .* Received: "):
        Translator.load(folder.path)


# What a translator's export with rounded weights is measured on.
CORPUS = {"name": "reverse", "source_language": "a", "target_language": "b"}


def test_it_is_the_beginning_of_the_test_split_with_the_run_s_tokenizer():
    description = {"corpus": CORPUS, "evaluation": {"tokenize": "char"}}
    sources, references, measure = Translation.held_out(description)
    test = corpora.load(**CORPUS).test
    assert list(sources) == list(test.sources[:MEASURED])
    assert list(references) == list(test.targets[:MEASURED])
    changed = [f"{one} a" for one in references]
    assert measure(changed, references) == bleu.score(changed, references, "char")
    assert measure(changed, references) != bleu.score(changed, references, "13a")


def test_the_tokenizer_is_the_language_s_where_the_run_names_none():
    [*_, measure] = Translation.held_out({"corpus": {**CORPUS, "target_language": "zh"}})
    assert "tok:zh" in measure(["a b"], ["a b"])["bleu_signature"]


def test_there_is_none_without_a_corpus_or_its_files(tmp_path, caplog):
    assert Translation.held_out({}) is None
    assert caplog.text == ""
    files = {**CORPUS, "name": "text_files", "data_dir": str(tmp_path)}
    assert Translation.held_out({"corpus": files}) is None
    assert "BLEU of the export is not measured: the run was trained on text that is" in caplog.text


@pytest.mark.parametrize(
    ("moved", "task", "instead"),
    [
        ({"name": "text_files", "data_dir": "gone"}, "translation", "--source_file and --ref"),
        ({"name": "tsv", "data_file": "gone.tsv"}, "translation", "--source_file and --ref"),
        ({"name": "lines", "data_dir": "gone"}, "language_modelling", "text by --ref"),
        ({"name": "treebank", "data_dir": "gone"}, "parsing", "trees by --ref"),
    ],
)
def test_who_scores_a_model_whose_text_was_moved_is_told_what_to_pass(moved, task, instead):
    values = {**DEFAULTS, "split": "test"}
    description = {"task": task, "corpus": {**CORPUS, **moved}}
    told = rf"^m was .* no longer there .*gone.*pass {instead}"
    with pytest.raises(FileNotFoundError, match=told):
        task_class(task).scorer(description, "m", values)
