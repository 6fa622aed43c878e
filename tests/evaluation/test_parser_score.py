"""A parser's trees beside gold trees: whose parts of speech count, which sentences are short."""

import dataclasses

import pytest

from keras_transformer.evaluation.parser_score import measure, table, with_leaves_of
from keras_transformer.evaluation.parseval import COLLINS, compare, summarize
from pipelines.trees import parse

GOLD = [
    parse(r"(S (NP (DT the) (NN cat)) (VP (VB saw) (NP (CD 1\/2) (, ,) (NN dog))) (. .))"),
    parse("(S (NP (PRP it)) (VP (VBZ sings)))"),
]
# As a model gives them: without tags and without the treebank's escapes of slashes.
RIGHT = [
    "(S (NP (XX the) (XX cat)) (VP (XX saw) (NP (XX 1/2) (XX ,) (XX dog))) (XX .))",
    "(S (NP (XX it)) (VP (XX sings)))",
]
FLAT = "(S (XX the) (XX cat) (XX saw) (XX 1/2) (XX ,) (XX dog) (XX .))"


def test_right_brackets_are_right_without_tags():
    scores = measure(RIGHT, GOLD)
    assert (scores["all"]["f1"], scores["all"]["complete"]) == (100, 100)
    assert scores["all"]["sentences"] == 2


def test_gold_s_tags_say_what_is_punctuation():
    """A comma inside of NP or beside it is no difference, if it is known to be one."""
    beside = "(S (NP (XX the) (XX cat)) (VP (XX saw) (NP (XX 1/2) (XX ,) (XX dog)) (XX .)))"
    assert measure([beside], GOLD[:1])["all"]["f1"] == 100
    # A control: with its own tags the same tree is wrong, or no tree over these words at all.
    assert summarize([compare(GOLD[0], parse(beside))]).f1 == 0


def test_figures_are_those_of_parseval():
    gold_tagged = with_leaves_of(GOLD[0], parse(FLAT))
    sentences = [compare(GOLD[0], gold_tagged), compare(GOLD[1], GOLD[1])]
    summary = dataclasses.asdict(summarize(sentences))
    found = measure([FLAT, RIGHT[1]], GOLD)["all"]
    assert found == {name: pytest.approx(summary[name], abs=0.005) for name in found}
    assert found["recall"] == pytest.approx(100 * 4 / 7, abs=0.005)


def test_short_sentences_have_figures_of_their_own():
    parameters = dataclasses.replace(COLLINS, cutoff=2)
    scores = measure([FLAT, RIGHT[1]], GOLD, parameters)
    assert (scores["cutoff"], scores["short"]["sentences"]) == (2, 1)
    assert scores["short"]["f1"] == 100 > scores["all"]["f1"]


def test_another_number_of_words_is_an_error_and_no_tree_is_skipped():
    scores = measure(["(S (XX the))", ""], GOLD)
    assert scores["all"]["f1"] == 0
    assert (scores["all"]["errors"], scores["all"]["skipped"]) == (1, 1)
    [heading, _, everything] = table(scores).splitlines()
    assert heading.split()[-3:] == ["errors", "skipped", "of"]
    assert everything.split()[-3:] == ["1", "1", "all"]


def test_tagging_is_scored_where_the_parser_says_parts_of_speech():
    """Of the words that count: four of five of the first sentence, none of the second."""
    tagged = str(GOLD[0]).replace("(CD ", "(NN ").replace("(, ,)", "(X ,)")
    scores = measure([tagged, RIGHT[1]], GOLD)
    assert scores["all"]["f1"] == 100
    assert scores["all"]["tagging"] == pytest.approx(100 * 4 / 7, abs=0.005)
    [heading, *_, everything] = table(scores).splitlines()
    assert heading.split()[-2:] == ["tagging", "of"]
    assert everything.split()[-2:] == ["57.14", "all"]
    # A control: XX says nothing.
    assert "tagging" not in measure(RIGHT, GOLD)["all"]


def test_a_tree_of_any_depth_is_scored():
    deep = "(S " * 2000 + "(NP (XX it)) (VP (XX sings))" + ")" * 2000
    scores = measure([deep], GOLD[1:])
    assert scores["all"]["recall"] == 100 > 1 > scores["all"]["precision"]


def test_the_table_has_a_row_for_short_sentences_and_one_for_all():
    [heading, short, everything] = table(measure(RIGHT, GOLD)).splitlines()
    assert heading.split()[:4] == ["sentences", "recall", "precision", "F1"]
    assert short.endswith("at most 40 words")
    assert everything.split() == ["2", *["100.00"] * 5, "0.00", "all"]
