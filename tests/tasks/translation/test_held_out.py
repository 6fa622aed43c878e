"""What a translator's export with rounded weights is measured on."""

from keras_transformer.evaluation import bleu
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
    assert f"BLEU of the export is not measured: Neither {tmp_path}" in caplog.text
