"""Labelled bracketing, beside counts by hand and what EVALB prints."""

import dataclasses
import pathlib

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
    return (sentence.matched, sentence.gold, sentence.test, sentence.crossing, sentence.tags)


def test_a_bracket_has_its_label_and_its_words():
    expected = [Bracket("S", 0, 5), Bracket("NP", 0, 2), Bracket("VP", 2, 5), Bracket("NP", 3, 5)]
    assert brackets(GOLD, PLAIN) == expected


CAT = str(GOLD)
# A chain of equal labels is as many brackets, and each is matched once.
SINGLE, DOUBLED = "(S (NP (N a)) (V b))", "(S (NP (NP (NP (N a)))) (V b))"


LEAVES = "(DT the) (NN cat) (VB saw) (DT a) (NN dog)"
CROSSING = "(S (X (NP (DT the) (NN cat)) (VB saw)) (NP (DT a) (NN dog)))"
GO, NOBODY_GOES = "(S (VP (V go)))", "(S (NP (-NONE- *)) (VP (V go)))"
# A gold tree, one that is compared with it, and what is counted.
DIFFERENT = {
    "equal": (CAT, CAT, PLAIN, (4, 4, 4, 0, 5)),
    "another label": (CAT, CAT.replace("(VB saw) (NP", "(VB saw) (PP"), PLAIN, (3, 4, 4, 0, 5)),
    "another part of speech": (CAT, CAT.replace("(NN cat)", "(VB cat)"), PLAIN, (4, 4, 4, 0, 4)),
    "a bracket that crosses VP": (CAT, CROSSING, PLAIN, (3, 4, 4, 1, 5)),
    "the root's bracket alone": (CAT, f"(S {LEAVES})", PLAIN, (1, 4, 1, 0, 5)),
    "no bracket": (CAT, LEAVES, PLAIN, (0, 4, 0, 0, 5)),
    "a chain where one is asked for": (SINGLE, DOUBLED, PLAIN, (2, 2, 4, 0, 2)),
    "one where a chain is asked for": (DOUBLED, SINGLE, PLAIN, (2, 4, 2, 0, 2)),
    "a constituent without words is no bracket": (NOBODY_GOES, GO, COLLINS, (2, 2, 2, 0, 1)),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_equal_and_crossing_brackets_and_equal_tags_are_counted(name):
    gold, test, parameters, expected = DIFFERENT[name]
    assert counts(compare(parse(gold), parse(test), parameters)) == expected


def test_parts_of_speech_are_compared_as_they_are():
    """EVALB takes tags from labels of constituents only."""
    gold = parse("(S-1 (N a) (V b) (.-1 .))")
    sentence = compare(gold, parse("(S=2 (N-X a) (V b) (.-1 .))"), COLLINS)
    assert counts(sentence) == (1, 1, 1, 0, 2)
    assert (sentence.words, sentence.length) == (3, 3)


def test_a_sentence_is_complete_if_no_counted_bracket_differs():
    unlabeled = dataclasses.replace(PLAIN, labeled=False)
    relabelled = "(S (X (DT the) (NN cat)) (Y (VB saw) (Z (DT a) (NN dog))))"
    equal = ("(S (ADVP (RB up)) (V go))", "(S (PRT (RB up)) (V go))")
    for pair, parameters in (((CAT, CAT), PLAIN), (equal, COLLINS), ((CAT, relabelled), unlabeled)):
        sentence = compare(*map(parse, pair), parameters)
        assert sentence.is_complete
        assert summarize([sentence]).f1 == pytest.approx(100)
        assert compare(*map(parse, pair), PLAIN).is_complete == (pair == (CAT, CAT))
    for pair in ((CAT, f"(X {CAT})"), (f"(X {CAT})", CAT)):
        assert not compare(*map(parse, pair), PLAIN).is_complete


def test_punctuation_may_hang_anywhere():
    inside = parse("(TOP (S (NP (N a) (, ,)) (VP (V b)) (. .)))")
    outside = parse("(S (NP (N a)) (, ,) (VP (V b) (. .)))")
    sentence = compare(inside, outside, COLLINS)
    assert counts(sentence) == (3, 3, 3, 0, 2)
    assert (sentence.length, sentence.words) == (4, 2)
    assert counts(compare(inside, outside, PLAIN))[0] < 3


def test_other_words_are_an_error_and_no_tree_is_skipped():
    sentences = [
        compare(GOLD, GOLD, PLAIN),
        compare(GOLD, parse("(S (N cat))"), PLAIN),
        compare(GOLD, parse("(S (A the) (B cow) (C saw) (D a) (E dog))"), PLAIN),
        compare(GOLD, None, PLAIN),
        compare(GOLD, parse(""), PLAIN),
    ]
    statuses = [sentence.status for sentence in sentences]
    assert statuses == [Status.VALID, Status.ERROR, Status.ERROR, Status.SKIPPED, Status.SKIPPED]
    summary = summarize(sentences)
    assert (summary.errors, summary.skipped, summary.valid, summary.recall) == (2, 2, 1, 100)


def test_a_tree_whose_words_are_all_left_out_is_skipped():
    """EVALB looks at what is left: before it compares the words."""
    dot = parse("(S (. .))")
    for gold in (dot, parse("(S (N a) (. .))")):
        assert compare(gold, dot, COLLINS).status == Status.SKIPPED
    assert compare(dot, parse("(S (N a))"), COLLINS).status == Status.ERROR
    assert compare(dot, dot, PLAIN).status == Status.VALID


def test_a_summary_adds_brackets_up_not_percentages():
    pair = [compare(GOLD, parse(text), PLAIN) for text in (f"(S {LEAVES})", CROSSING)]
    summary = summarize(pair)
    assert summary.recall == pytest.approx(100 * 4 / 8)
    assert summary.precision == pytest.approx(100 * 4 / 5)
    assert summary.f1 == pytest.approx(2 * 50 * 80 / 130)
    assert (summary.average_crossing, summary.no_crossing) == (0.5, 50)
    assert summary.two_or_less_crossing == 100
    assert summarize([]).f1 == 0


def test_a_parameter_file_is_read():
    text = """
    # a comment
    DEBUG 0
    LABELED 0   # not the labels
    CUTOFF_LEN 10
    DELETE_LABEL TOP
    DELETE_LABEL ``
    DELETE_LABEL_FOR_LENGTH -NONE-
    EQ_LABEL ADVP PRT
    EQ_WORD This this
    """
    assert read_parameters(text, "a.prm") == Parameters(
        labeled=False,
        cutoff=10,
        deleted=frozenset({"TOP", "``"}),
        deleted_for_length=frozenset({"-NONE-"}),
        equal_labels=frozenset({frozenset({"ADVP", "PRT"})}),
        equal_words=frozenset({frozenset({"This", "this"})}),
    )


def test_a_hash_may_be_a_tag():
    text = "DELETE_LABEL #\n#DELETE_LABEL A\nEQ_LABEL # $  # a comment\nQUOTE_LABEL ``"
    parameters = read_parameters(text, "a.prm")
    assert parameters.deleted == {"#"}
    assert parameters.equal_labels == {frozenset({"#", "$"})}


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


def test_right_brackets_are_right_without_tags():
    scores = measure(RIGHT, GOLD_TREES)
    assert (scores["all"]["f1"], scores["all"]["complete"]) == (100, 100)
    assert scores["all"]["sentences"] == 2


def test_gold_s_tags_say_what_is_punctuation():
    """A comma inside of NP or beside it is no difference, if it is known to be one."""
    beside = "(S (NP (XX the) (XX cat)) (VP (XX saw) (NP (XX 1/2) (XX ,) (XX dog)) (XX .)))"
    assert measure([beside], GOLD_TREES[:1])["all"]["f1"] == 100
    # A control: with its own tags the same tree is wrong, or no tree over these words at all.
    assert summarize([compare(GOLD_TREES[0], parse(beside))]).f1 == 0


def test_figures_are_those_of_parseval():
    gold_tagged = with_leaves_of(GOLD_TREES[0], parse(FLAT))
    sentences = [compare(GOLD_TREES[0], gold_tagged), compare(GOLD_TREES[1], GOLD_TREES[1])]
    summary = dataclasses.asdict(summarize(sentences))
    scores = measure([FLAT, RIGHT[1]], GOLD_TREES)["all"]
    assert scores == {name: pytest.approx(summary[name], abs=0.005) for name in scores}
    assert scores["recall"] == pytest.approx(100 * 4 / 7, abs=0.005)


def test_short_sentences_have_figures_of_their_own():
    parameters = dataclasses.replace(COLLINS, cutoff=2)
    scores = measure([FLAT, RIGHT[1]], GOLD_TREES, parameters)
    assert (scores["cutoff"], scores["short"]["sentences"]) == (2, 1)
    assert scores["short"]["f1"] == 100 > scores["all"]["f1"]


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


def test_the_table_has_a_row_for_short_sentences_and_one_for_all():
    [heading, short, everything] = table(measure(RIGHT, GOLD_TREES)).splitlines()
    assert heading.split()[:4] == ["sentences", "recall", "precision", "F1"]
    assert short.endswith("at most 40 words")
    assert everything.split() == ["2", *["100.00"] * 5, "0.00", "all"]


# Our report of a small sample is the one worked out by hand; that of EVALB's own sample, which lies
# in the team's shared folder, is the one that EVALB prints.
HEADER = """  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
============================================================================"""


def percent(part, whole):
    return 100 * part / whole if whole else 0.0


def line(number, sentence):
    recall = percent(sentence.matched, sentence.gold)
    precision = percent(sentence.matched, sentence.test)
    tagging = percent(sentence.tags, sentence.words)
    return (
        f"{number:4d} {sentence.length:4d} {sentence.status:4d}  {recall:6.2f} {precision:6.2f} "
        f"{sentence.matched:5d} {sentence.gold:6d} {sentence.test:4d} {sentence.crossing:6d} "
        f"{sentence.words:6d} {sentence.tags:5d}   {tagging:6.2f}"
    )


def total(sentences):
    """EVALB's line of sums, which has sentences without crossing brackets under "Cross"."""
    valid = [sentence for sentence in sentences if sentence.status == Status.VALID]
    sums = {
        name: sum(getattr(sentence, name) for sentence in valid)
        for name in ("matched", "gold", "test", "words", "tags")
    }
    summary = summarize(sentences)
    without = sum(sentence.crossing == 0 for sentence in valid)
    return (
        f"                {summary.recall:6.2f} {summary.precision:6.2f} {sums['matched']:6d} "
        f"{sums['gold']:6d} {sums['test']:4d} {without:6d}  {sums['words']:5d} {sums['tags']:5d}   "
        f"{summary.tagging:6.2f}"
    )


def block(title, sentences):
    summary = summarize(sentences)
    return f"""
-- {title} --
Number of sentence        = {summary.sentences:6d}
Number of Error sentence  = {summary.errors:6d}
Number of Skip  sentence  = {summary.skipped:6d}
Number of Valid sentence  = {summary.valid:6d}
Bracketing Recall         = {summary.recall:6.2f}
Bracketing Precision      = {summary.precision:6.2f}
Complete match            = {summary.complete:6.2f}
Average crossing          = {summary.average_crossing:6.2f}
No crossing               = {summary.no_crossing:6.2f}
2 or less crossing        = {summary.two_or_less_crossing:6.2f}
Tagging accuracy          = {summary.tagging:6.2f}"""


def report(sentences, cutoff):
    """All that EVALB prints."""
    short = [sentence for sentence in sentences if sentence.length <= cutoff]
    return "\n".join(
        [
            HEADER,
            *(line(number, sentence) for number, sentence in enumerate(sentences, 1)),
            "=" * 76,
            total(sentences),
            "=== Summary ===",
            block("All", sentences),
            block(f"len<={cutoff}", short),
        ]
    )


def trees_of(path):
    """The trees of a file, one a line; None for a line without one, such as "(())"."""
    return [parse(text) if text.strip("() ") else None for text in read_lines(path)]


def compared(gold, test, parameters):
    """The `Sentence` of each line of two files."""
    pairs = zip(trees_of(gold), trees_of(test), strict=True)
    return [compare(*pair, parameters) for pair in pairs]


EVALB = pathlib.Path(__file__).parents[3] / "shared" / "data" / "evalb"
# The words that COLLINS.prm counts: the cat saw dogs; it sings; go; no.
GOLD_FILE = """\
(TOP (S (NP (DT the) (NN cat)) (VP (VBD saw) (NP (NNS dogs))) (. .)))
(S (NP-SBJ (PRP it)) (VP (VBZ sings)))
(S (VP (VB go)))
(S (INTJ (UH no)))
(X (. .))
"""
TEST_FILE = """\
(S (NP (DT the) (NN cat) (VBD saw)) (NP (NN dogs)) (. .))
( (S (NP (PRP it)) (VP (VBZ sings))) )

(S (INTJ (UH yes)))
(X (. .))
"""
# 1: S is right, NP of dogs too; NP of three words crosses VP. One tag of four is wrong.
# 3 has no tree, 4 another word, 5 no word that counts.
EXPECTED = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy
============================================================================
   1    5    0   50.00  66.67     2      4    3      1      4     3    75.00
   2    2    0  100.00 100.00     3      3    3      0      2     2   100.00
   3    1    2    0.00   0.00     0      0    0      0      1     0     0.00
   4    1    1    0.00   0.00     0      0    0      0      1     0     0.00
   5    1    2    0.00   0.00     0      0    0      0      0     0     0.00
============================================================================
                 71.43  83.33      5      7    6      1      6     5    83.33
=== Summary ===

-- All --
Number of sentence        =      5
Number of Error sentence  =      1
Number of Skip  sentence  =      2
Number of Valid sentence  =      2
Bracketing Recall         =  71.43
Bracketing Precision      =  83.33
Complete match            =  50.00
Average crossing          =   0.50
No crossing               =  50.00
2 or less crossing        = 100.00
Tagging accuracy          =  83.33

-- len<=2 --
Number of sentence        =      4
Number of Error sentence  =      1
Number of Skip  sentence  =      2
Number of Valid sentence  =      1
Bracketing Recall         = 100.00
Bracketing Precision      = 100.00
Complete match            = 100.00
Average crossing          =   0.00
No crossing               = 100.00
2 or less crossing        = 100.00
Tagging accuracy          = 100.00
"""


def test_a_sample_that_was_worked_out_by_hand(tmp_path):
    paths = [tmp_path / name for name in ("a.gld", "a.tst")]
    for path, text in zip(paths, (GOLD_FILE, TEST_FILE), strict=True):
        path.write_text(text, encoding="utf-8")
    sentences = compared(*paths, COLLINS)
    assert report(sentences, cutoff=2).splitlines() == EXPECTED.splitlines()


def test_every_figure_of_evalb_s_sample_is_equal():
    if not EVALB.is_dir():
        pytest.skip(f"{EVALB} is not on this machine")
    parameters = read_parameters((EVALB / "sample.prm").read_text(), "sample.prm")
    sentences = compared(EVALB / "sample.gld", EVALB / "sample.tst", parameters)
    expected = (EVALB / "sample.rsl").read_text()
    assert report(sentences, parameters.cutoff).splitlines() == expected.splitlines()


def test_collins_is_evalb_s_file():
    if not EVALB.is_dir():
        pytest.skip(f"{EVALB} is not on this machine")
    assert read_parameters((EVALB / "COLLINS.prm").read_text(), "COLLINS.prm") == COLLINS
