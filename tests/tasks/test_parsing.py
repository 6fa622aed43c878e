"""A parser's training: what it learns from, what it measures, what it refuses."""

import json
import pathlib

import pytest
from command_flags import NO_FLAGS, values_of_task

from keras_transformer.tasks.parsing.module import ParsingModule
from keras_transformer.tasks.parsing.task import Parsing, TreeScorer
from pipelines.corpora import Treebank, treebank

TREEBANK = pathlib.Path(__file__).parents[1] / "treebank"
FLAT = "(S (XX a) (XX b))"


def task_of(*arguments):
    flags = ("--flagfile=parsing_small.flags", f"--data_dir={TREEBANK}")
    return Parsing(values_of_task(Parsing, *flags, *arguments))


def flat(tree):
    """A tree over the same words with one bracket."""
    return f"(S {' '.join(f'(XX {word})' for word in tree.words)})"


def test_it_learns_trees_from_a_treebank_alone(tmp_path):
    task = task_of()
    assert task.corpus.name == "treebank"
    assert task.corpus_settings["target_language"] == "trees"
    assert task.default_model_dir(task.values) == "runs/parsing_en"
    message = r"^--task=parsing learns from trees\. Received: corpus=reverse\. Pass --c"
    with pytest.raises(ValueError, match=message):
        task_of("--corpus=reverse")
    with pytest.raises(ValueError, match=r"^--format=ctranslate2 is no format of the task parsing"):
        Parsing.convert(None, tmp_path, {"format": "ctranslate2"})


def test_trees_may_be_longer_than_sentences():
    """Section 6.3, wherever no flag says otherwise: output at most input length + 300."""
    assert ParsingModule.default_options == {"max_length": "+300", "min_length": 1}
    options = task_of().decoding
    assert (options.max_length, options.min_length, options.beam_size) == ("+300", "1", 12)
    assert task_of("--max_length=+7").decoding.max_length == "+7"


def test_an_epoch_is_measured_by_f1_of_the_first_trees():
    task = task_of("--keep_best=f1", "--validation_sentences=200")
    gold = Treebank(data_dir=str(TREEBANK)).trees("valid")
    assert task.higher_is_better == {"f1": True, "cross_entropy": False}
    assert task.validation_quality(list(map(str, gold[:5]))) == 100
    assert 0 < task.validation_quality([*map(str, gold[:4]), flat(gold[4])]) < 100
    assert task_of("--validation_sentences=0").higher_is_better == {"cross_entropy": False}


def scorer(**values):
    prefixes = ["train", "valid", "test"]
    settings = {"name": "treebank", "data_dir": str(TREEBANK), "prefixes": prefixes}
    return TreeScorer({"corpus": settings}, "runs/p", {**NO_FLAGS, **values})


def test_a_split_is_parsed_again_and_scored():
    gold = Treebank(data_dir=str(TREEBANK)).trees("valid")
    examined = scorer(split="valid")
    assert examined.sources == list(map(treebank.words_of, gold))
    right = examined.score(list(map(str, gold)))
    assert json.loads(json.dumps(right)) == right
    assert (right["sentences"], right["scores"]["all"]["f1"]) == (len(gold), 100)
    assert examined.score(list(map(flat, gold)))["scores"]["all"]["f1"] < 60
    expected = ["8", *["100.00"] * 5, "0.00", "100.00", "all"]
    assert examined.table(right).splitlines()[-1].split() == expected


def test_trees_of_a_file_are_parsed_by_a_model_of_unknown_origin(tmp_path):
    file = tmp_path / "own.trees"
    file.write_text(
        "( (S (NP-SBJ (-NONE- *)) (VP (VB Go)) (. .)) )\n(S (NN a)\n (NN b))\n( (-NONE- *) )"
    )
    examined = TreeScorer({}, "m", {**NO_FLAGS, "reference_file": str(file)})
    assert examined.sources == ["Go .", "a b"]
    scores = examined.score(["(S (VP (XX Go)) (XX .))", FLAT])["scores"]
    assert scores["all"]["complete"] == 100


def test_the_parameter_file_of_evalb_decides_what_is_scored(tmp_path):
    file = tmp_path / "a.prm"
    file.write_text("LABELED 0\nCUTOFF_LEN 3\nDELETE_LABEL .\n")
    examined = scorer(evalb_parameters=str(file))
    other_labels = [
        str(tree).replace("(NP", "(X") for tree in Treebank(data_dir=str(TREEBANK)).trees("test")
    ]
    scores = examined.score(other_labels)["scores"]
    assert (scores["cutoff"], scores["all"]["f1"]) == (3, 100)
    assert scorer().score(other_labels)["scores"]["all"]["f1"] < 100
    file.write_bytes(b"LABELED 0\n\xff\n")
    with pytest.raises(ValueError, match=r"a\.prm, line 2: must be UTF-8"):
        scorer(evalb_parameters=str(file))


@pytest.mark.parametrize("text", ["", "\n", "( (-NONE- *) )"])
def test_a_file_without_trees_is_refused(text, tmp_path):
    file = tmp_path / "empty.trees"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"^--reference_file=.* holds no tree with words\."):
        scorer(reference_file=str(file))


def test_damaged_gold_trees_are_counted_with_the_scores(tmp_path):
    """Training dropped them, too: F1 is that of the others, and the table counts them."""
    for split in ("train", "valid", "test"):
        lines = (TREEBANK / f"{split}.trees").read_text(encoding="utf-8")
        (tmp_path / f"{split}.trees").write_text(f"(())\n{lines}", encoding="utf-8")
    settings = {"name": "treebank", "data_dir": str(tmp_path)}
    scorer = TreeScorer({"corpus": settings}, "runs/a", NO_FLAGS)
    gold = Treebank(data_dir=str(TREEBANK)).trees("test")
    assert scorer.references == gold
    scores = scorer.score(list(map(str, gold)))
    dropped = f"dropped: 1 empty bracket (first: {tmp_path}/test.trees, line 1)"
    assert scorer.table(scores).splitlines()[-1] == dropped
    values = {**NO_FLAGS, "reference_file": str(tmp_path / "test.trees")}
    with pytest.raises(ValueError, match=r"test\.trees, line 1: the bracket \( that token 3 clos"):
        TreeScorer({"corpus": settings}, "runs/a", values)
