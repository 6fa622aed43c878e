"""Trees: brackets of any depth are read and written back, wrong ones are refused, and raw text
becomes words.
"""

import functools
import itertools
import pathlib
import re
import sys

import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st
from written import escaped

from pipelines.corpora import treebank
from pipelines.corpora.treebank import tree_lines as numbered
from pipelines.trees import (
    Tree,
    bracketing,
    fold,
    parse,
    plain,
    plain_label,
    split_words,
    unescaped,
)
from pipelines.trees.linearization import LEAVES, to_symbols

SENTENCE = "(S (NP-SBJ (DT The) (NN cat)) (VP (VBZ sits) (NP (-NONE- *T*-1))) (. .))"


def read(lines, name):
    return (tree for _, tree in numbered(lines, name))


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
    ],
)
def test_a_plain_tree(tree, expected):
    assert str(plain(parse(tree))) == expected


@pytest.mark.parametrize(
    ("label", "expected"),
    [("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("-LRB-", "-LRB-"), ("-NONE-", "-NONE-"), ("=", "=")],
)
def test_a_label_loses_its_tags_but_not_itself(label, expected):
    assert plain_label(label) == expected


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
    [tree] = read([text], "a.trees")
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
        (
            "(S (the) (NN a))",
            "the bracket (the that token 5 closes is empty: a word needs brackets",
        ),
        ("(S ( a) (NN b))", "the bracket (a that token 5 closes is empty"),
        ("(NN)", "the bracket (NN that token 3 closes is empty"),
        ("(S () (NN a))", "the bracket ( that token 4 closes is empty"),
    ],
)
def test_wrong_brackets_are_refused(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(text)


def test_a_broken_tree_is_refused_with_its_line():
    lines = [SENTENCE, "", "(S (N a))", "(S (N b)", "(N c)"]
    message = r"^a\.trees, line 4: 1 bracket is not closed: \(S"
    with pytest.raises(ValueError, match=rf"{message}; line 5, not indented, begins another\.$"):
        list(read(lines, "a.trees"))
    with pytest.raises(ValueError, match=rf"{message}\.$"):
        list(read(lines[:4], "a.trees"))
    # It does not take in the next tree, though a later one has a bracket too many.
    lines = ["(S (NP (N a))", "(S (N b))", "(S (NP (N c))))"]
    message = r"^a\.trees, line 1: 1 bracket is not closed: \(S; line 2"
    for indentation in ("", "  "):
        with pytest.raises(ValueError, match=message):
            list(read([indentation + line for line in lines], "a.trees"))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # Lines that are indented go on with a tree.
        ([" (S (N a)", "", "    (N b)", ")", "(S", " (N c))"], ["(S (N a) (N b))", "(S (N c))"]),
        # Trees on one line are several.
        (
            ["(S (N a)) ( (S (N b)) )", "( (S (N c)) (. .) )"],
            ["(S (N a))", "(S (N b))", "( (S (N c)) (. .))"],
        ),
    ],
)
def test_where_a_tree_ends(lines, expected):
    assert list(map(str, read(lines, "a.trees"))) == expected


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
# Trees of each split that the graph writes.
SAMPLE = 150


def of_craft(test):
    skip = pytest.mark.skipif(not CRAFT.is_dir(), reason=f"{CRAFT} is not here")
    return pytest.mark.slow(skip(test))


@pytest.fixture(scope="module")
def splits():
    """All trees of each split."""
    return {
        path.name: [tree for tree in map(plain, treebank.read_trees(path)) if tree]
        for path in sorted(CRAFT.glob("*.trees.gz"))
    }


@of_craft
def test_all_trees_are_there_and_a_parser_writes_their_words_as_they_have_them(splits):
    assert {name.partition(".")[0] for name in splits} == {"train", "valid", "test"}
    assert sum(map(len, splits.values())) > 28_000
    words = {word for tree in itertools.chain(*splits.values()) for word in tree.words}
    assert [word for word in words if escaped(unescaped(word)) != word] == []
    assert {"-LRB-", "-RRB-", "[", "]", "{", "}", "/"} <= words


@of_craft
@pytest.mark.parametrize("leaves", LEAVES)
def test_the_graph_writes_the_symbols_that_python_writes(splits, leaves):
    graph = tf.function(
        functools.partial(bracketing.symbols, leaves=leaves),
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )
    for trees in splits.values():
        sample = trees[:: len(trees) // SAMPLE]
        symbols = graph(tf.constant(list(map(str, sample)))).numpy().tolist()
        assert symbols == [" ".join(to_symbols(tree, leaves)).encode() for tree in sample]
