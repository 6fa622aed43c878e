"""What a translator's export with rounded weights is measured on."""

import pytest

from keras_transformer.evaluation import bleu
from keras_transformer.tasks import task_class
from keras_transformer.tasks.score import DEFAULTS
from keras_transformer.tasks.translation.task import MEASURED, Translation
from pipelines import corpora

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
    with pytest.raises(
        FileNotFoundError, match=rf"^m was .* no longer there .*gone.*pass {instead}"
    ):
        task_class(task).scorer(description, "m", values)
