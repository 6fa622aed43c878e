"""Labelled bracketing, beside counts by hand and what EVALB prints."""

import dataclasses
import pathlib
import re

import pytest

from keras_transformer.evaluation.parser_score import measure, table, with_leaves_of
from keras_transformer.evaluation.parseval import (
    COLLINS,
    Bracket,
    Parameters,
    Status,
    brackets,
    compare,
    read_parameters,
    summarize,
)
from pipelines.line_files import read_lines
from pipelines.trees import parse

PLAIN = Parameters(deleted=frozenset(), equal_labels=frozenset())
GOLD = parse("(S (NP (DT the) (NN cat)) (VP (VB saw) (NP (DT a) (NN dog))))")


def counts(sentence):
    """Brackets: matched, gold, the parser's; crossing ones; words: tagged right, tagged, all."""
    brackets = (sentence.matched, sentence.gold, sentence.test)
    return brackets, sentence.crossing, (sentence.tags, sentence.words, sentence.length)


def test_a_bracket_has_its_label_and_its_words():
    expected = [Bracket("S", 0, 5), Bracket("NP", 0, 2), Bracket("VP", 2, 5), Bracket("NP", 3, 5)]
    assert brackets(GOLD, PLAIN) == expected


CAT = str(GOLD)
# A chain of equal labels is as many brackets, and each is matched once.
SINGLE, DOUBLED = "(S (NP (N a)) (V b))", "(S (NP (NP (NP (N a)))) (V b))"
LEAVES = "(DT the) (NN cat) (VB saw) (DT a) (NN dog)"
CROSSING = "(S (X (NP (DT the) (NN cat)) (VB saw)) (NP (DT a) (NN dog)))"
GO, NOBODY_GOES = "(S (VP (V go)))", "(S (NP (-NONE- *)) (VP (V go)))"
INSIDE = "(TOP (S (NP (N a) (, ,)) (VP (V b)) (. .)))"
OUTSIDE = "(S (NP (N a)) (, ,) (VP (V b) (. .)))"
ALL = (5, 5, 5)
# A gold tree, one that is compared with it, and what is counted.
DIFFERENT = {
    "equal": (CAT, CAT, PLAIN, (4, 4, 4), 0, ALL),
    "another label": (CAT, CAT.replace("(VB saw) (NP", "(VB saw) (PP"), PLAIN, (3, 4, 4), 0, ALL),
    "another part of speech": (CAT, CAT.replace("(NN", "(VB", 1), PLAIN, (4, 4, 4), 0, (4, 5, 5)),
    "a bracket that crosses VP": (CAT, CROSSING, PLAIN, (3, 4, 4), 1, ALL),
    "the root's bracket alone": (CAT, f"(S {LEAVES})", PLAIN, (1, 4, 1), 0, ALL),
    "no bracket": (CAT, LEAVES, PLAIN, (0, 4, 0), 0, ALL),
    "a chain where one is asked for": (SINGLE, DOUBLED, PLAIN, (2, 2, 4), 0, (2, 2, 2)),
    "one where a chain is asked for": (DOUBLED, SINGLE, PLAIN, (2, 4, 2), 0, (2, 2, 2)),
    "no bracket of no words": (NOBODY_GOES, GO, COLLINS, (2, 2, 2), 0, (1, 1, 1)),
    **{
        f"{mark} that hangs anywhere": (
            *(tree.replace("(, ,)", f"({mark} {mark})") for tree in (INSIDE, OUTSIDE)),
            *(COLLINS, (3, 3, 3), 0, (2, 2, 4)),
        )
        for mark in (",", ":", "``", "''", ".")
    },
    "punctuation that counts": (INSIDE, OUTSIDE, PLAIN, (1, 4, 3), 0, (4, 4, 4)),
    # EVALB takes tags from labels of constituents only.
    "function tags": (
        "(S-1 (N a) (V b) (.-1 .))",
        "(S=2 (N-X a) (V b) (.-1 .))",
        *(COLLINS, (1, 1, 1), 0, (2, 3, 3)),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_equal_and_crossing_brackets_and_equal_tags_are_counted(name):
    gold, test, parameters, *expected = DIFFERENT[name]
    assert counts(compare(parse(gold), parse(test), parameters)) == tuple(expected)


def test_a_sentence_is_complete_if_no_counted_bracket_differs():
    unlabeled = dataclasses.replace(PLAIN, labeled=False)
    relabelled = "(S (X (DT the) (NN cat)) (Y (VB saw) (Z (DT a) (NN dog))))"
    equal = ("(S (ADVP (RB up)) (V go))", "(S (PRT (RB up)) (V go))")
    for pair, parameters in (((CAT, CAT), PLAIN), (equal, COLLINS), ((CAT, relabelled), unlabeled)):
        sentence = compare(*map(parse, pair), parameters)
        assert sentence.is_complete
        assert summarize([sentence])["f1"] == pytest.approx(100)
        assert compare(*map(parse, pair), PLAIN).is_complete == (pair == (CAT, CAT))
    for pair in ((CAT, f"(X {CAT})"), (f"(X {CAT})", CAT)):
        assert not compare(*map(parse, pair), PLAIN).is_complete


DOT = "(S (. .))"
# A gold tree, one that is compared with it or None, and whether the sentence counts. EVALB looks at
# what is left before it compares the words.
STATUSES = {
    "equal": (CAT, CAT, PLAIN, Status.VALID),
    "fewer words": (CAT, "(S (N cat))", PLAIN, Status.ERROR),
    "another word": (CAT, CAT.replace("cat", "cow"), PLAIN, Status.ERROR),
    "no tree": (CAT, None, PLAIN, Status.SKIPPED),
    "an empty tree": (CAT, "", PLAIN, Status.SKIPPED),
    "words left out on both sides": (DOT, DOT, COLLINS, Status.SKIPPED),
    "words left out of the parser's": ("(S (N a) (. .))", DOT, COLLINS, Status.SKIPPED),
    "words left out of gold": (DOT, "(S (N a))", COLLINS, Status.ERROR),
    "words that count": (DOT, DOT, PLAIN, Status.VALID),
}


@pytest.mark.parametrize("name", STATUSES)
def test_other_words_are_an_error_and_no_tree_is_skipped(name):
    gold, test, parameters, status = STATUSES[name]
    sentence = compare(parse(gold), None if test is None else parse(test), parameters)
    assert sentence.status == status
    summary = summarize([sentence])
    counted = [summary[name] for name in ("valid", "errors", "skipped")]
    assert [number for number, count in enumerate(counted) if count] == [status]


def test_a_parameter_file_is_read():
    text = """
    # a comment
    DEBUG 0
    LABELED 0   # not the labels
    CUTOFF_LEN 10
    DELETE_LABEL TOP
    DELETE_LABEL ``
    DELETE_LABEL #
    #DELETE_LABEL A
    QUOTE_LABEL ``
    DELETE_LABEL_FOR_LENGTH -NONE-
    EQ_LABEL ADVP PRT
    EQ_LABEL # $  # a comment
    EQ_WORD This this
    """
    assert read_parameters(text, "a.prm") == Parameters(
        labeled=False,
        cutoff=10,
        deleted=frozenset({"TOP", "``", "#"}),
        deleted_for_length=frozenset({"-NONE-"}),
        equal_labels=frozenset({frozenset({"ADVP", "PRT"}), frozenset({"#", "$"})}),
        equal_words=frozenset({frozenset({"This", "this"})}),
    )
    without_labels = read_parameters("CUTOFF_LEN 10", "a.prm")
    assert without_labels.cutoff == 10
    assert not without_labels.deleted | without_labels.deleted_for_length


@pytest.mark.parametrize(
    "line", ["EQ_LABEL A", "CUTOFF_LEN abc", "CUTOFF_LEN", "DELETE_LABEL A B", "WHAT", "EQ_WORD"]
)
def test_a_line_that_evalb_does_not_know_is_refused(line):
    with pytest.raises(ValueError, match=rf"a\.prm, line 2: '{line}' is no line of EVALB's"):
        read_parameters(f"DEBUG 1\n{line}", "a.prm")


# A parser's trees beside gold trees: whose parts of speech count, which sentences are short.
GOLD_TREES = [
    parse(r"(S (NP (DT the) (NN cat)) (VP (VB saw) (NP (CD 1\/2) (, ,) (NN dog))) (. .))"),
    parse("(S (NP (PRP it)) (VP (VBZ sings)))"),
]
# As a model gives them: without tags and without the treebank's escapes of slashes.
RIGHT = [
    "(S (NP (XX the) (XX cat)) (VP (XX saw) (NP (XX 1/2) (XX ,) (XX dog))) (XX .))",
    "(S (NP (XX it)) (VP (XX sings)))",
]
FLAT = "(S (XX the) (XX cat) (XX saw) (XX 1/2) (XX ,) (XX dog) (XX .))"


def test_gold_s_tags_say_what_is_punctuation():
    """A comma inside of NP or beside it is no difference, if it is known to be one."""
    beside = "(S (NP (XX the) (XX cat)) (VP (XX saw) (NP (XX 1/2) (XX ,) (XX dog)) (XX .)))"
    assert measure([beside], GOLD_TREES[:1])["all"]["f1"] == 100
    # A control: with its own tags the same tree is wrong, or no tree over these words at all.
    assert summarize([compare(GOLD_TREES[0], parse(beside))])["f1"] == 0


def test_figures_are_those_of_parseval():
    gold_tagged = with_leaves_of(GOLD_TREES[0], parse(FLAT))
    sentences = [compare(GOLD_TREES[0], gold_tagged), compare(GOLD_TREES[1], GOLD_TREES[1])]
    summary = summarize(sentences)
    scores = measure([FLAT, RIGHT[1]], GOLD_TREES)["all"]
    assert scores == {name: pytest.approx(summary[name], abs=0.005) for name in scores}
    assert scores["recall"] == pytest.approx(100 * 4 / 7, abs=0.005)


def test_short_sentences_have_figures_of_their_own():
    parameters = dataclasses.replace(COLLINS, cutoff=2)
    scores = measure([FLAT, RIGHT[1]], GOLD_TREES, parameters)
    assert (scores["cutoff"], scores["short"]["sentences"]) == (2, 1)
    assert scores["short"]["f1"] == 100 > scores["all"]["f1"]
    [heading, short, everything] = table(measure(RIGHT, GOLD_TREES)).splitlines()
    assert heading.split()[:4] == ["sentences", "recall", "precision", "F1"]
    assert short.endswith("at most 40 words")
    assert everything.split() == ["2", *["100.00"] * 5, "0.00", "all"]


def test_another_number_of_words_is_an_error_and_no_tree_is_skipped():
    scores = measure(["(S (XX the))", ""], GOLD_TREES)
    assert scores["all"]["f1"] == 0
    assert (scores["all"]["errors"], scores["all"]["skipped"]) == (1, 1)
    [heading, _, everything] = table(scores).splitlines()
    assert heading.split()[-3:] == ["errors", "skipped", "of"]
    assert everything.split()[-3:] == ["1", "1", "all"]


def test_tagging_is_scored_where_the_parser_says_parts_of_speech():
    """Of the words that count: four of five of the first sentence, none of the second."""
    tagged = str(GOLD_TREES[0]).replace("(CD ", "(NN ").replace("(, ,)", "(X ,)")
    scores = measure([tagged, RIGHT[1]], GOLD_TREES)
    assert scores["all"]["f1"] == 100
    assert scores["all"]["tagging"] == pytest.approx(100 * 4 / 7, abs=0.005)
    [heading, *_, everything] = table(scores).splitlines()
    assert heading.split()[-2:] == ["tagging", "of"]
    assert everything.split()[-2:] == ["57.14", "all"]
    # A control: XX says nothing.
    assert "tagging" not in measure(RIGHT, GOLD_TREES)["all"]


def test_a_tree_of_any_depth_is_scored():
    deep = "(S " * 2000 + "(NP (XX it)) (VP (XX sings))" + ")" * 2000
    scores = measure([deep], GOLD_TREES[1:])
    assert scores["all"]["recall"] == 100 > 1 > scores["all"]["precision"]


# Figures of a small sample are those worked out by hand. Those of EVALB's own sample, which lies in
# the team's shared folder, are the ones that EVALB prints.
def figures(sentences, cutoff):
    """The numbers of EVALB's report: of each sentence, of their sum, of all and of short ones."""
    rows = []
    for number, sentence in enumerate(sentences, 1):
        length, status, *numbers = dataclasses.astuple(sentence)
        alone = summarize([sentence])
        rates = (alone["recall"], alone["precision"])
        rows += [number, length, status, *rates, *numbers, alone["tagging"]]
    valid = [sentence for sentence in sentences if sentence.status == Status.VALID]
    _, _, *numbers = map(sum, zip(*map(dataclasses.astuple, valid), strict=True))
    # Here EVALB counts the sentences without a crossing bracket.
    numbers[3] = sum(sentence.crossing == 0 for sentence in valid)
    whole = summarize(sentences)
    rows += [whole["recall"], whole["precision"], *numbers, whole["tagging"]]
    for summary in (whole, summarize([each for each in sentences if each.length <= cutoff])):
        rows += [value for name, value in summary.items() if name != "f1"]
    # With as many decimals as EVALB prints.
    return [f"{value:.2f}" for value in rows]


def printed(report):
    """The numbers of a report that EVALB printed."""
    lines = [line.rpartition(" = ")[2] for line in report.splitlines()]
    rows = [line.split() for line in lines if re.fullmatch(r"[\d. ]+", line)]
    return [f"{float(number):.2f}" for row in rows for number in row]


def compared(gold, test, parameters):
    """The `Sentence` of each line of two texts. A line such as "(())" has no tree."""
    sides = [
        [parse(text) if text.strip("() ") else None for text in lines] for lines in (gold, test)
    ]
    return [compare(*pair, parameters) for pair in zip(*sides, strict=True)]


EVALB = pathlib.Path(__file__).parents[3] / "shared" / "data" / "evalb"
# The words that COLLINS.prm counts: the cat saw dogs; it sings; go; no.
GOLD_LINES = """\
(TOP (S (NP (DT the) (NN cat)) (VP (VBD saw) (NP (NNS dogs))) (. .)))
(S (NP-SBJ (PRP it)) (VP (VBZ sings)))
(S (VP (VB go)))
(S (INTJ (UH no)))
(X (. .))
"""
TEST_LINES = """\
(S (NP (DT the) (NN cat) (VBD saw)) (NP (NN dogs)) (. .))
( (S (NP (PRP it)) (VP (VBZ sings))) )

(S (INTJ (UH yes)))
(X (. .))
"""
# 1: S is right, NP of dogs too; NP of three words crosses VP. One tag of four is wrong.
# 3 has no tree, 4 another word, 5 no word that counts.
EXPECTED = """
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Cross Words Tags Accuracy
   1    5    0   50.00  66.67     2      4    3      1     4    3    75.00
   2    2    0  100.00 100.00     3      3    3      0     2    2   100.00
   3    1    2    0.00   0.00     0      0    0      0     1    0     0.00
   4    1    1    0.00   0.00     0      0    0      0     1    0     0.00
   5    1    2    0.00   0.00     0      0    0      0     0    0     0.00
                 71.43  83.33     5      7    6      1     6    5    83.33
 sentences, errors, skipped, valid, recall, precision, complete, crossing, none, two or less, tags
   5    1    2    2   71.43  83.33   50.00    0.50   50.00  100.00   83.33
   4    1    2    1  100.00 100.00  100.00    0.00  100.00  100.00  100.00
"""


def test_a_sample_that_was_worked_out_by_hand():
    sentences = compared(GOLD_LINES.splitlines(), TEST_LINES.splitlines(), COLLINS)
    assert figures(sentences, cutoff=2) == printed(EXPECTED)
    assert summarize(sentences)["f1"] == pytest.approx(200 * 5 / (7 + 6))
    assert summarize([])["f1"] == 0


def test_every_figure_of_evalb_s_sample_is_equal():
    if not EVALB.is_dir():
        pytest.skip(f"{EVALB} is not on this machine")
    parameters = read_parameters((EVALB / "sample.prm").read_text(), "sample.prm")
    sides = (read_lines(EVALB / f"sample.{ending}") for ending in ("gld", "tst"))
    expected = printed((EVALB / "sample.rsl").read_text())
    assert len(expected) == 24 * 12 + 9 + 2 * 11
    assert figures(compared(*sides, parameters), parameters.cutoff) == expected


def test_collins_is_evalb_s_file():
    if not EVALB.is_dir():
        pytest.skip(f"{EVALB} is not on this machine")
    assert read_parameters((EVALB / "COLLINS.prm").read_text(), "COLLINS.prm") == COLLINS
