"""Trees: brackets of any depth are read and written back, wrong ones are refused, and trees become
symbols and symbols trees, in graphs as in Python.
"""

import functools
import pathlib
import re
import sys

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from written import drawn_trees, escaped

from pipelines.corpora import treebank
from pipelines.trees import (
    Tree,
    bracketing,
    fold,
    linearization,
    parse,
    plain,
    split_words,
    unescaped,
)
from pipelines.trees.linearization import WORD, alphabet_of, from_symbols, to_symbols
from pipelines.vocabularies.vocabulary import SPACE

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


LABELS = ("S", "NP", "VP", "ADVP|PRT")
# Pieces that are no symbols. Those that begin with a space, such as text that begins with a bracket
# or brackets without a label, are words. The others take no word.
OTHERS = ["<pad>", "what", "▁see", "▁(see", "▁(", "▁)", "XX", ")NP"]
LEAVES = ["▁XX", "▁XX-NN", "▁XX--LRB-", "▁XX-''"]
PIECES = [*OTHERS, *LEAVES, *(f"▁{bracket}{label}" for bracket in "()" for label in LABELS)]
ALPHABET = alphabet_of(PIECES)
SYMBOLS = [
    piece[1:] if piece not in OTHERS else "what" if piece.startswith(SPACE) else ""
    for piece in PIECES
]
WORDS = st.lists(
    st.sampled_from(["a", "(", "x)y", "(2R)-a", "-LCB-b", "{}", "[1]", "日本", "1/2"]), max_size=6
)
# Leaves are as frequent as all other pieces together.
IDS = st.lists(
    st.one_of(
        st.integers(len(OTHERS), len(OTHERS) + len(LEAVES) - 1), st.integers(0, len(PIECES) - 1)
    ),
    max_size=14,
)
TEXT = tf.TensorSpec([None], tf.string)
# As in an export: a graph, and no Python between its operations.
trees_graph = tf.function(
    lambda ids, text: bracketing.trees(ALPHABET, ids, text),
    input_signature=[tf.TensorSpec([None, None], tf.int32), TEXT],
    autograph=False,
)
symbols_graphs = {
    leaves: tf.function(
        functools.partial(bracketing.symbols, leaves=leaves),
        input_signature=[TEXT],
        autograph=False,
    )
    for leaves in linearization.LEAVES
}


def trees_of(ids, sentences):
    """The graph's trees of rows of ids, which are padded to the same length."""
    longest = max(map(len, ids))
    rows = [[*row, *[0] * (longest - len(row))] for row in ids]
    array = np.array(rows, np.int32).reshape(len(ids), longest)
    trees = trees_graph(tf.constant(array), tf.constant(sentences))
    return [tree.decode() for tree in trees.numpy()]


def expected_tree(ids, words):
    if not words:
        return ""
    return str(from_symbols([SYMBOLS[number] for number in ids], list(map(escaped, words))))


@settings(max_examples=50)
@given(st.lists(st.tuples(IDS, WORDS), min_size=1, max_size=12))
def test_any_symbols_become_the_tree_that_python_makes_of_them(rows):
    """Each row independently of the others in its batch."""
    ids, words = zip(*rows, strict=True)
    trees = trees_of(ids, [" ".join(sentence) for sentence in words])
    assert trees == list(map(expected_tree, ids, words))


def test_any_white_space_parts_words_and_they_need_not_be_utf_8():
    trees = trees_of([[SYMBOLS.index("XX")]] * 3, ["  a \t b\n", " \r\n", ""])
    assert trees == ["(S (XX a) (XX b))", "", ""]
    [tree] = trees_graph(tf.constant([[0]]), tf.constant([b"\xff( a"])).numpy()
    assert tree == b"(S (XX \xff-LRB-) (XX a))"


@settings(max_examples=50)
@given(st.lists(st.tuples(IDS, WORDS.filter(bool)), min_size=1, max_size=6))
def test_a_tree_becomes_the_symbols_that_python_makes_of_it(rows):
    trees = [expected_tree(ids, words) for ids, words in rows]
    for leaves, graph in symbols_graphs.items():
        expected = [" ".join(to_symbols(parse(tree), leaves)) for tree in trees]
        symbols = graph(tf.constant([*trees, ""]))
        assert [text.decode() for text in symbols.numpy()] == [*expected, ""]
        # The graph leaves symbols as they are, unless words among them may be brackets.
        if leaves != "words":
            assert graph(symbols).numpy().tolist() == symbols.numpy().tolist()


def test_an_alphabet_knows_how_its_trees_are_written():
    assert ALPHABET.parts_of_speech == ("''", "-LRB-", "NN", "XX")
    assert ALPHABET.leaves == "parts_of_speech"
    brackets = ["▁(S", "▁)S"]
    assert alphabet_of([*brackets, "▁XX"]).leaves == "xx"
    # Another XX is a word of the text: it does not stand beside the brackets.
    words = alphabet_of(["<pad>", "<unk>", "<s>", "</s>", *brackets, "<0x00>", "▁XX", "ing"])
    assert words.leaves == "words"
    assert np.flatnonzero(words.is_leaf).tolist() == [6, 7, 8]
    assert np.flatnonzero(words.takes >= 0).tolist() == [7]


def test_a_vocabulary_without_symbols_is_refused():
    for pieces in (["▁the", "▁(see"], ["▁XX"], ["▁(S", "▁)NP"]):
        with pytest.raises(ValueError, match=r"^`vocabulary` must have the pieces of trees: brac"):
            alphabet_of(pieces)


# Trees to symbols and back: nothing is lost, and any symbols make a tree over the words.
SYMBOL_LABELS = st.sampled_from(["S", "NP", "VP", "PP", "ADVP|PRT", "."])
SYMBOL_WORDS = st.text("abc", min_size=1, max_size=3)
PARTS_OF_SPEECH = ["NN", "-LRB-", "PRP$", "''", WORD]


labels = ["S", "NP", "VP", "XX", ")", ""]
any_symbols = st.lists(
    st.one_of(
        st.sampled_from([WORD, f"{WORD}-NN", f"{WORD}-", "NN"]),
        st.sampled_from([f"{bracket}{label}" for bracket in "()" for label in labels]),
        st.text(max_size=3),
    ),
    max_size=30,
)


@pytest.mark.parametrize("leaves", linearization.LEAVES)
@settings(max_examples=40)
@given(st.data())
def test_a_tree_comes_back(leaves, data):
    tags = st.sampled_from(PARTS_OF_SPEECH if leaves == "parts_of_speech" else [WORD])
    tree = data.draw(drawn_trees(SYMBOL_LABELS, tags, SYMBOL_WORDS))
    assert from_symbols(to_symbols(tree, leaves), tree.words) == tree


@given(any_symbols, st.lists(SYMBOL_WORDS, min_size=1, max_size=12))
def test_any_symbols_make_a_tree_over_exactly_the_words(symbols, words):
    tree = from_symbols(symbols, words)
    assert tree.words == words
    assert from_symbols(to_symbols(tree, "parts_of_speech"), words) == tree
    assert parse(str(tree)).words == words


JOHN = "(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))"
WITHOUT_A_LABEL = "( (S (NP (DT the) (NN cat)) (VP (VBZ sits))) (. .) )"


@pytest.mark.parametrize(
    ("tree", "leaves", "symbols"),
    [
        # Vinyals et al. 2015, section 2.1.
        (JOHN, "xx", "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"),
        (JOHN, "parts_of_speech", "(S (NP XX-NNP )NP (VP XX-VBZ (NP XX-DT XX-NN )NP )VP XX-. )S"),
        (JOHN, "words", "(S (NP John )NP (VP has (NP a dog )NP )VP . )S"),
        # Words are those of the text.
        (r"(NP (-LRB- -LRB-) (CD 1\/2) (-RRB- -RRB-))", "words", "(NP ( 1/2 ) )NP"),
        (
            r"(S (NP|a\/b (N -LRB-2R-RRB--a) (N -RRB-LRB-)) (-LRB-X (N -LSB-x)))",
            *("words", r"(S (NP|a\/b (2R)-a -RRB( )NP|a\/b (-LRB-X [x )-LRB-X )S"),
        ),
        # Labels lose their function tags, and so do parts of speech.
        (
            "(S (NP-SBJ-1 (DT the))\n  (VP=2 (-LRB- -LRB-)(NP|X (NN a))))",
            "xx",
            "(S (NP XX )NP (VP XX (NP|X XX )NP|X )VP )S",
        ),
        (
            "(S (NP (NN-X-1 a) (-LRB- -LRB-)) (VP (=VB b) (XX c)))",
            *("parts_of_speech", "(S (NP XX-NN XX--LRB- )NP (VP XX-=VB XX )VP )S"),
        ),
        # Brackets around the tree.
        (WITHOUT_A_LABEL, "xx", "(S (NP XX XX )NP (VP XX )VP )S XX"),
        ("( (S (NP (NN a)) (VP (VB b))))", "xx", "(S (NP XX )NP (VP XX )VP )S"),
    ],
)
def test_the_symbols_of_a_tree(tree, leaves, symbols):
    """In Python and in the graph."""
    read = plain(parse(tree))
    assert to_symbols(read, leaves) == symbols.split(" ")
    [written] = symbols_graphs[leaves](tf.constant([tree])).numpy()
    assert written.decode() == symbols
    rebuilt = from_symbols(symbols.split(" "), read.words)
    assert (rebuilt.words, rebuilt.label) == (read.words, read.label or "S")


@pytest.mark.parametrize(
    ("symbols", "tree"),
    [
        # Whole; unclosed; closed by an outer bracket; a bracket that was never opened.
        ("(S (NP XX )NP (VP XX )VP )S", "(S (NP (XX a)) (VP (XX b)))"),
        ("(S (NP XX (VP XX", "(S (NP (XX a) (VP (XX b))))"),
        ("(S (NP (PP XX )NP XX )S", "(S (NP (PP (XX a))) (XX b))"),
        ("(S (NP XX )VP )PP XX )NP )S", "(S (NP (XX a) (XX b)))"),
        # With a part of speech, and without; an empty one is none.
        ("(S XX-DT XX )S", "(S (DT a) (XX b))"),
        ("(S XX- XX-NN-X )S", "(S (XX a) (NN-X b))"),
        # Any words as leaves, and brackets among them.
        ("(S b (NP ) )NP ( )S", "(S (XX a) (NP (XX b)))"),
        # Too many words, too few; none at all; more behind the root.
        ("(S XX XX XX XX )S", "(S (XX a) (XX b))"),
        ("(S (NP XX )NP )S", "(S (NP (XX a)) (XX b))"),
        ("(S (NP XX", "(S (NP (XX a) (XX b)))"),
        ("", "(S (XX a) (XX b))"),
        (")S (NP XX XX )NP", "(NP (XX a) (XX b))"),
        ("(S XX )S (NP XX )NP", "(S (XX a) (NP (XX b)))"),
        # No root; an empty constituent; a word; brackets without a label.
        ("XX (NP XX )NP", "(S (XX a) (NP (XX b)))"),
        ("(S (NP )NP XX XX )S", "(S (XX a) (XX b))"),
        ("(S XX what XX )S", "(S (XX a) (XX b))"),
        ("(S ( XX ) XX )S", "(S (XX a) (XX b))"),
        # A label within itself.
        ("(NP (NP XX )NP XX )NP", "(NP (NP (XX a)) (XX b))"),
    ],
)
def test_broken_symbols_are_mended_by_the_rules(symbols, tree):
    assert str(from_symbols(symbols.split(), ["a", "b"])) == tree


def test_one_word_alone_is_a_tree():
    for symbols, tree in ((f"(NP {WORD} )NP", "(NP (XX a))"), (WORD, "(XX a)"), ("", "(XX a)")):
        assert str(from_symbols(symbols.split(), ["a"])) == tree
