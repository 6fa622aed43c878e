"""Trees in brackets: there and back, what is removed, and what is told of broken ones."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.trees import Tree, escaped, parse, plain, plain_label, read, unescaped

SENTENCE = "(S (NP-SBJ (DT The) (NN cat)) (VP (VBZ sits) (NP (-NONE- *T*-1))) (. .))"

names = st.text("ABCnps-=1.,", min_size=1, max_size=5)
trees = st.recursive(
    st.builds(lambda label, word: Tree(label, (word,)), names, names),
    lambda inner: st.builds(
        lambda label, children: Tree(label, tuple(children)),
        names,
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


@given(trees)
def test_a_tree_is_read_as_it_was_written(tree):
    assert parse(str(tree)) == tree


@given(st.lists(trees, min_size=2, max_size=3))
def test_trees_side_by_side_stand_under_an_empty_label(several):
    assert parse(" ".join(map(str, several))) == Tree("", tuple(several))


@given(st.lists(trees, min_size=1, max_size=4), st.booleans())
def test_a_file_has_its_trees_on_one_line_or_several(several, broken):
    text = "\n\n".join(str(tree).replace(" (", "\n (" if broken else " (") for tree in several)
    assert list(read(text.splitlines(), "a.trees")) == several


def test_brackets_without_a_label_around_one_tree_are_left_out():
    assert parse(f"( {SENTENCE} )") == parse(SENTENCE)


def test_a_thin_space_is_part_of_a_word():
    assert parse("(S (N a\u2009b))").words == ["a\u2009b"]


def test_words_come_in_order():
    assert parse(SENTENCE).words == ["The", "cat", "sits", "*T*-1", "."]


def test_traces_function_tags_and_what_is_left_empty_are_removed():
    assert str(plain(parse(SENTENCE))) == "(S (NP (DT The) (NN cat)) (VP (VBZ sits)) (. .))"
    assert plain(parse("(S (NP (-NONE- *)))")) is None


def test_unary_chains_stay():
    chain = parse("(S (VP (VP-1 (VB Go))))")
    assert str(plain(chain)) == "(S (VP (VP (VB Go))))"


@pytest.mark.parametrize(
    ("label", "expected"),
    [("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("-LRB-", "-LRB-"), ("-NONE-", "-NONE-"), ("=", "=")],
)
def test_a_label_loses_its_tags_but_not_itself(label, expected):
    assert plain_label(label) == expected


@pytest.mark.parametrize("word", ["(", ")", "{", "}", "[", "]", "cat"])
def test_escapes_go_both_ways(word):
    assert unescaped(escaped(word)) == word
    assert not set(escaped(word)) & set("()[]{}")


def test_slashes_are_unescaped():
    assert unescaped(r"1\/2") == "1/2"
    assert unescaped(r"\*") == "*"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("(S (NP a)", "1 bracket is not closed"),
        ("(S (NP (N a)", "2 brackets are not closed"),
        ("(S (NP a)))", "token 8, ')', closes a bracket that was not opened"),
        ("(S a (N b))", "holds the word 'a' beside others"),
        ("(S a b)", "holds the word 'a' beside others"),
        ("word (S a)", "a word stands outside all brackets"),
    ],
)
def test_what_is_wrong_is_told(text, wrong):
    with pytest.raises(ValueError, match=re.escape(wrong)):
        parse(text)


def test_the_line_of_a_broken_tree_is_told():
    lines = [SENTENCE, "", "(S (N a))", "(S (N b)", "(N c)"]
    with pytest.raises(ValueError, match=r"^a\.trees, line 4: 1 bracket is not closed\.$"):
        list(read(lines, "a.trees"))
