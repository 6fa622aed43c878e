"""Scores beside what EVALB prints: of its own sample where the team's shared folder is, and of a
small one that was worked out by hand.
"""

import pathlib

import pytest
from evaluation import evalb_layout

from keras_transformer.evaluation.parseval import COLLINS, read_parameters

EVALB = pathlib.Path(__file__).parents[3] / "shared" / "data" / "evalb"
# The words that COLLINS.prm counts: the cat saw dogs; it sings; go; no.
GOLD = """\
(TOP (S (NP (DT the) (NN cat)) (VP (VBD saw) (NP (NNS dogs))) (. .)))
(S (NP-SBJ (PRP it)) (VP (VBZ sings)))
(S (VP (VB go)))
(S (INTJ (UH no)))
(X (. .))
"""
TEST = """\
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


@pytest.fixture
def written(tmp_path):
    """A function of the texts of two files: their paths."""

    def write(gold, test):
        for name, text in (("a.gld", gold), ("a.tst", test)):
            (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / "a.gld", tmp_path / "a.tst"

    return write


def test_a_sample_that_was_worked_out_by_hand(written):
    found = evalb_layout.compared(*written(GOLD, TEST), COLLINS)
    assert evalb_layout.report(found, cutoff=2).splitlines() == EXPECTED.splitlines()


def test_every_figure_of_evalb_s_sample_is_equal():
    if not EVALB.is_dir():
        pytest.skip(f"{EVALB} is not on this machine")
    parameters = read_parameters((EVALB / "sample.prm").read_text(), "sample.prm")
    found = evalb_layout.compared(EVALB / "sample.gld", EVALB / "sample.tst", parameters)
    expected = (EVALB / "sample.rsl").read_text()
    assert evalb_layout.report(found, parameters.cutoff).splitlines() == expected.splitlines()


def test_collins_is_evalb_s_file():
    if not EVALB.is_dir():
        pytest.skip(f"{EVALB} is not on this machine")
    assert read_parameters((EVALB / "COLLINS.prm").read_text(), "COLLINS.prm") == COLLINS


@pytest.mark.parametrize(
    ("gold", "test", "told"),
    [
        (
            "(S (N a))\n(S (N a)",
            "(S (N a))\n()",
            r"a\.gld, line 2: 1 bracket is not closed: \(S\.$",
        ),
        ("(S (N a))\n", "(S (a))\n", r"a\.tst, line 1: the bracket \(a that token 5 closes is emp"),
        ("(S (N a))\n", "\n\n", r"a\.gld and .*a\.tst must have as many lines\. Received: 1 and 2"),
        ("(S (N a))\n(())\n", "\n\n", r"a\.gld, line 2: a gold tree is missing"),
    ],
)
def test_what_is_wrong_is_told_with_its_file_and_line(written, gold, test, told):
    with pytest.raises(ValueError, match=told):
        evalb_layout.compared(*written(gold, test), COLLINS)
