"""A language model's training: what it learns from, what it refuses, how it is decoded."""

import json

import numpy as np
import pytest
from command_flags import NO_FLAGS, values_of_task

from keras_transformer.inference.generator import Generator
from keras_transformer.runs.folder import RunFolder
from keras_transformer.tasks.language_modelling.task import LanguageModelling, PerplexityScorer


@pytest.fixture
def folder(tmp_path):
    """Text of one language."""
    for split in ("train", "valid", "test"):
        lines = "".join(f"{split} dogs run {number}\n" for number in range(30))
        (tmp_path / f"{split}.en").write_text(lines)
    return tmp_path


@pytest.fixture
def task_of(folder):
    """A function of flags: the task that they make."""

    def task(*arguments):
        flags = ("--flagfile=gpt.flags", "--corpus=lines", f"--data_dir={folder}")
        return LanguageModelling(values_of_task(LanguageModelling, *flags, *arguments))

    return task


def test_it_learns_the_lines_of_a_folder(task_of, tmp_path):
    task = task_of("--vocabulary_size=290", "--max_train_length=9")
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    task.write_files(run)
    task.read_files(run)
    examples = task.examples("train")
    assert examples.sides == ("text",)
    assert len(examples) >= 30
    assert examples.lengths.max() <= 9
    assert task.default_model_dir(task.values) == "runs/lines_en"
    assert task.description()["training"] == {"vocabulary_size": 290, "max_length": 9}
    shape = task.module_class.build(task.description(), "float32")(np.array([[2, 5]])).shape
    assert shape == (1, 2, 290)


def test_text_is_sampled_unless_flags_ask_for_a_search(task_of):
    assert (task_of().decoding.samples, task_of().decoding.top_p) == (1, 0.9)
    assert task_of("--beam_size=3").decoding.samples == 0
    assert task_of("--beam_form=staying").decoding.samples == 0
    assert task_of("--temperature=0.5").decoding.temperature == 0.5


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("--constrained", r"^`constrained` needs a source, which a language model has not"),
        ("--coverage_penalty=0.1", r"^`coverage_penalty` needs a source"),
        (
            "--positions=learned --max_positions=99 --max_train_length=100",
            r"^--max_train_length=100 needs 100 .* max_positions=99\. Try --max_train_length=99\.$",
        ),
        ("--attention=low_rank:4 --positions=sinusoidal", r"^attention=low_rank:4 mixes the keys"),
        ("--corpus=spans", r"Received: corpus=spans, .* Pass --corpus=lines, which reads the same"),
        ("--corpus=records", r"^--task=language_modelling reads text\. Received: corpus=records"),
    ],
)
def test_flags_that_do_not_fit_are_refused(task_of, argument, message, monkeypatch):
    from pipelines import corpora
    from pipelines.corpora.record_files import Records

    if argument == "--corpus=records":
        fields = {"name": "records", "train": Records.__new__(Records)}
        fields |= dict.fromkeys(("source_language", "target_language"))
        corpus = type("Corpus", (), fields)()
        monkeypatch.setattr(corpora, "load", lambda **_: corpus)
    with pytest.raises(ValueError, match=message):
        assert task_of(*argument.split()).corpus


def test_the_lines_of_a_split_or_of_a_file_are_examined(folder, monkeypatch):
    settings = {"name": "lines", "source_language": "en", "target_language": "en"}
    description = {"corpus": {**settings, "data_dir": str(folder)}}
    assert len(PerplexityScorer(description, "m", {**NO_FLAGS, "split": "valid"})._lines) == 30
    own = folder / "own.txt"
    own.write_text("one\n\ntwo\n")
    values = {**NO_FLAGS, "reference_file": str(own)}
    scorer = PerplexityScorer({}, "m", values)
    assert scorer._lines == {1: "one", 3: "two"}

    monkeypatch.setattr(Generator, "load", lambda *_: Generator({}, lambda _: [9, 11], 10))
    with pytest.raises(ValueError, match=r"^line 3 has 11 tokens, more than the 10 allowed"):
        scorer.examine({"precision": "float32", "options": {}}, 1)
    own.write_text("\n")
    with pytest.raises(ValueError, match=r"own\.txt holds no text"):
        PerplexityScorer({}, "m", values)


@pytest.mark.parametrize(("key", "value"), [("weight", 2), ("tag", "<news>")])
def test_a_mixture_s_weights_and_tags_are_refused(folder, key, value):
    language = {"source_language": "en", "target_language": "en"}
    member = {"corpus": "lines", "data_dir": str(folder), **language}
    path = folder / "mixture.json"
    arguments = ("--flagfile=gpt.flags", "--corpus=mixture", f"--mixture={path}")

    def read(**more):
        path.write_text(json.dumps({"corpora": [{**member, **more}]}))
        return LanguageModelling(values_of_task(LanguageModelling, *arguments)).corpus

    with pytest.raises(ValueError, match=rf"Received: a mixture with {key}s\. Leave them out"):
        read(**{key: value})
    message = r"a mixture with corpus spans, which .* List corpus lines in its place, w"
    with pytest.raises(ValueError, match=message):
        read(corpus="spans")
    assert len(read().train) == 30


def test_a_perplexity_that_no_float_holds_is_called_infinite():
    numbers = {"lines": 1, "pieces": 2, "perplexity": 3.5, "perplexity_of_words": None}
    table = PerplexityScorer.table(None, numbers)
    assert table == "1 lines, 2 pieces\nperplexity 3.5 a piece, infinite a word"


def test_a_test_line_that_could_not_be_scored_is_refused_before_training(task_of, folder):
    (folder / "test.en").write_text("a dog\n" + "dogs run " * 1100 + "\n")
    task = task_of("--vocabulary_size=290")
    run = RunFolder(folder / "run")
    run.path.mkdir()
    task.write_files(run)
    task.read_files(run)
    with pytest.raises(ValueError, match=r"test.en, line 2 has .* Split it, or leave"):
        task.introduce()
