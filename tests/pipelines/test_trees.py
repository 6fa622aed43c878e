"""Trees: brackets of any depth are read and written back, wrong ones are refused, and raw text
becomes words.
"""

import pathlib
import re
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from written import drawn_trees, escaped

from pipelines.corpora import treebank
from pipelines.trees import Tree, fold, parse, plain, split_words, unescaped

SENTENCE = "(S (NP-SBJ (DT The) (NN cat)) (VP (VBZ sits) (NP (-NONE- *T*-1))) (. .))"


def read(lines):
    return [tree for _, tree in treebank.tree_lines(lines, "a.trees")]


names = st.text("ABCnps-=1.,", min_size=1, max_size=5)
trees = drawn_trees(names, names, names)


@given(trees)
def test_a_tree_is_read_as_it_was_written(tree):
    assert parse(str(tree)) == tree


@settings(max_examples=30)
@given(st.lists(trees, min_size=2, max_size=3))
def test_trees_side_by_side_stand_under_an_empty_label(several):
    assert parse(" ".join(map(str, several))) == Tree("", tuple(several))


@settings(max_examples=50)
@given(st.lists(trees, min_size=1, max_size=4), st.booleans())
def test_a_file_has_its_trees_on_one_line_or_several(several, broken):
    text = "\n\n".join(str(tree).replace(" (", "\n (" if broken else " (") for tree in several)
    assert read(text.splitlines()) == several


def test_words_come_in_order_and_a_thin_space_is_part_of_one():
    """Brackets without a label around one tree are left out."""
    assert parse(SENTENCE).words == ["The", "cat", "sits", "*T*-1", "."]
    assert parse(f"( {SENTENCE} )") == parse(SENTENCE)
    assert parse("(S (N a\u2009b))").words == ["a\u2009b"]


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        # Traces, function tags and emptied brackets are removed; unary chains stay.
        (SENTENCE, "(S (NP (DT The) (NN cat)) (VP (VBZ sits)) (. .))"),
        ("(S (NP (-NONE- *)))", "None"),
        ("(S (VP (VP-1 (VB Go))))", "(S (VP (VP (VB Go))))"),
        # A label loses its tags, but not itself.
        ("(NP-SBJ-1 (NP=2 (-LRB- a) (= b)))", "(NP (NP (-LRB- a) (= b)))"),
        # A parser splits at all spaces.
        ("(NP (CD 1\u00a0000\u2009km) (N \u2009))", "(NP (CD 1_000_km))"),
    ],
)
def test_a_plain_tree(tree, expected):
    assert str(plain(parse(tree))) == expected


@given(st.text("()[]{}-/2Ra*\u65e5", min_size=1))
@example("{3H}")
@example("cat")
def test_escapes_go_both_ways(word):
    """Only round brackets are escaped, as in CRAFT."""
    assert unescaped(escaped(word)) == word
    assert parse(f"(N {escaped(word)})").words == [escaped(word)]
    assert not set(escaped(word)) & set("()")
    assert (escaped(word) == word) == (not set(word) & set("()"))


@pytest.mark.parametrize(
    ("word", "in_text"),
    [
        ("-LRB-2R-RRB--foo", "(2R)-foo"),
        ("-LSB-3H-RSB-", "[3H]"),
        ("-LCB-", "{"),
        # Escapes have capitals and both hyphens.
        ("-lrb-", "-lrb-"),
        ("LRB-", "LRB-"),
        (r"1\/2", "1/2"),
        (r"\*", "*"),
        (r"and\/or\/both", "and/or/both"),
    ],
)
def test_all_brackets_are_unescaped_wherever_they_stand(word, in_text):
    assert unescaped(word) == in_text


def test_a_chain_of_any_depth_is_read_written_and_changed():
    """An untrained parser writes such chains; there must be no RecursionError."""
    text = "(S-X " * 5000 + "(N a)" + ")" * 5000
    [tree] = read([text])
    assert str(tree) == text
    assert str(plain(tree)) == text.replace("-X", "")
    assert (tree.words, len(tree.spans())) == (["a"], 5000)
    assert tree.spans()[0][1:] == tree.spans()[-1][1:] == (0, 1)
    depth = fold(tree, lambda inner, depths: 1 if inner.is_preterminal else 1 + max(depths))
    assert depth == 5001


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP a)", "1 bracket is not closed: (S"),
        ("( (S (NP (N a)", "3 brackets are not closed: ( (S (NP"),
        ("(S (NP a)))", "token 8, ')', closes a bracket that was not opened"),
        ("(S a (N b))", "holds the word 'a' beside others"),
        ("(S a b)", "holds the word 'a' beside others"),
        ("word (S a)", "a word stands outside all brackets"),
        ("(S (the) (NN a))", "the bracket (the that token 5 closes is empty: a word needs"),
        ("(S ( a) (NN b))", "the bracket (a that token 5 closes is empty"),
        ("(NN)", "the bracket (NN that token 3 closes is empty"),
        ("(S () (NN a))", "the bracket ( that token 4 closes is empty"),
    ],
)
def test_wrong_brackets_are_refused(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(text)


BROKEN = [SENTENCE, "", "(S (N a))", "(S (N b)", "(N c)"]
# It does not take in the next tree, though a later one has a bracket too many.
TOO_FEW_AND_MANY = ["(S (NP (N a))", "(S (N b))", "(S (NP (N c))))"]


@pytest.mark.parametrize(
    ("lines", "line", "more"),
    [
        (BROKEN, 4, r"; line 5, not indented, begins another\.$"),
        (BROKEN[:4], 4, r"\.$"),
        (TOO_FEW_AND_MANY, 1, "; line 2"),
        (["  " + line for line in TOO_FEW_AND_MANY], 1, "; line 2"),
    ],
)
def test_a_broken_tree_is_refused_with_its_line(lines, line, more):
    message = rf"^a\.trees, line {line}: 1 bracket is not closed: \(S{more}"
    with pytest.raises(ValueError, match=message):
        read(lines)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # Lines that are indented go on with a tree.
        ([" (S (N a)", "", "    (N b)", ")", "(S", " (N c))"], ["(S (N a) (N b))", "(S (N c))"]),
        # Trees on one line are several.
        (["(N a) ( (S (N b)) )", "( (N c) (. .) )"], ["(N a)", "(S (N b))", "( (N c) (. .))"]),
    ],
)
def test_where_a_tree_ends(lines, expected):
    assert list(map(str, read(lines))) == expected


def test_contractions_punctuation_and_quotes_are_words():
    """As https://catalog.ldc.upenn.edu/docs/LDC99T42/tokenization.html describes them."""
    pytest.importorskip("nltk")
    lines = ["They'll save and invest more.", 'He said: "I can\'t (yet)."', "", "5.5 mg/ml"]
    assert split_words(lines) == [
        "They 'll save and invest more .",
        "He said : `` I ca n't ( yet ) . ''",
        "",
        "5.5 mg/ml",
    ]


def test_raw_text_without_nltk_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    monkeypatch.setitem(sys.modules, "nltk.tokenize", None)
    with pytest.raises(ValueError, match=r"^--raw_text needs nltk.*pip install '.*\[parsing\]'"):
        split_words(["a"])


CRAFT = pathlib.Path(__file__).parents[3] / "shared" / "data" / "craft"


@pytest.mark.slow
@pytest.mark.skipif(not CRAFT.is_dir(), reason=f"{CRAFT} is not here")
def test_all_trees_are_there_and_a_parser_writes_their_words_as_they_have_them():
    paths = sorted(CRAFT.glob("*.trees.gz"))
    assert {path.name.partition(".")[0] for path in paths} == {"train", "valid", "test"}
    trees = [tree for path in paths for tree in map(plain, treebank.read_trees(path)) if tree]
    assert len(trees) > 28_000
    words = {word for tree in trees for word in tree.words}
    assert [word for word in words if escaped(unescaped(word)) != word] == []
    assert {"-LRB-", "-RRB-", "[", "]", "{", "}", "/"} <= words
