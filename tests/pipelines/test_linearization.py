"""Trees to symbols and back: nothing is lost, and any symbols make a tree over the words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.trees import Tree, parse
from pipelines.trees.linearization import WORD, from_symbols, to_symbols

LABELS = st.sampled_from(["S", "NP", "VP", "PP", "ADVP|PRT", "."])
WORDS = st.text("abc", min_size=1, max_size=3)
PARTS_OF_SPEECH = ["NN", "-LRB-", "PRP$", "''", WORD]


def trees_of(parts_of_speech):
    """All trees whose words are such."""
    return st.recursive(
        st.builds(lambda name, word: Tree(name, (word,)), st.sampled_from(parts_of_speech), WORDS),
        lambda inner: st.builds(
            lambda label, children: Tree(label, tuple(children)),
            LABELS,
            st.lists(inner, min_size=1, max_size=4),
        ),
        max_leaves=15,
    )


labels = ["S", "NP", "VP", "XX", ")", ""]
any_symbols = st.lists(
    st.one_of(
        st.sampled_from([WORD, f"{WORD}-NN", f"{WORD}-", "NN"]),
        st.sampled_from([f"{bracket}{label}" for bracket in "()" for label in labels]),
        st.text(max_size=3),
    ),
    max_size=30,
)


@given(trees_of([WORD]))
def test_a_tree_comes_back(tree):
    assert from_symbols(to_symbols(tree), tree.words) == tree


@given(trees_of([WORD]))
def test_a_tree_comes_back_from_words(tree):
    assert from_symbols(to_symbols(tree, "words"), tree.words) == tree


@given(trees_of(PARTS_OF_SPEECH))
def test_a_tree_comes_back_with_its_parts_of_speech_if_they_are_kept(tree):
    assert from_symbols(to_symbols(tree, "parts_of_speech"), tree.words) == tree


@pytest.mark.parametrize("leaves", ["xx", "words"])
def test_control_they_are_lost_if_they_are_not_kept(leaves):
    tree = parse("(NP (NN a))")
    assert str(from_symbols(to_symbols(tree, leaves), ["a"])) == "(NP (XX a))"


@given(any_symbols, st.lists(WORDS, min_size=1, max_size=12))
def test_any_symbols_make_a_tree_over_exactly_the_words(symbols, words):
    tree = from_symbols(symbols, words)
    assert tree.words == words
    assert from_symbols(to_symbols(tree, "parts_of_speech"), words) == tree
    assert parse(str(tree)).words == words


def test_the_symbols_of_the_reference():
    """Vinyals et al. 2015, section 2.1."""
    tree = parse("(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))")
    assert " ".join(to_symbols(tree)) == "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"
    kept = "(S (NP XX-NNP )NP (VP XX-VBZ (NP XX-DT XX-NN )NP )VP XX-. )S"
    assert " ".join(to_symbols(tree, "parts_of_speech")) == kept
    words = "(S (NP John )NP (VP has (NP a dog )NP )VP . )S"
    assert " ".join(to_symbols(tree, "words")) == words


def test_words_are_those_of_the_text():
    tree = parse(r"(NP (-LRB- -LRB-) (CD 1\/2) (-RRB- -RRB-))")
    assert to_symbols(tree, "words") == ["(NP", "(", "1/2", ")", ")NP"]
    assert from_symbols(["(NP", "(", "1/2", ")", ")NP"], tree.words).words == tree.words


@pytest.mark.parametrize(
    ("symbols", "tree"),
    [
        # As it should be; unclosed; closed from outside; a bracket that was never opened.
        ("(S (NP XX )NP (VP XX )VP )S", "(S (NP (XX a)) (VP (XX b)))"),
        ("(S (NP XX (VP XX", "(S (NP (XX a) (VP (XX b))))"),
        ("(S (NP (PP XX )NP XX )S", "(S (NP (PP (XX a))) (XX b))"),
        ("(S (NP XX )VP )PP XX )NP )S", "(S (NP (XX a) (XX b)))"),
        # Parts of speech that are said, and one that is not; an empty one is not said.
        ("(S XX-DT XX )S", "(S (DT a) (XX b))"),
        ("(S XX- XX-NN-X )S", "(S (XX a) (NN-X b))"),
        # Words, whichever they are, and brackets among them.
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
def test_what_is_broken_is_mended_by_the_rules(symbols, tree):
    assert str(from_symbols(symbols.split(), ["a", "b"])) == tree


def test_one_word_alone():
    assert str(from_symbols([WORD], ["a"])) == "(XX a)"
    assert str(from_symbols(["(NP", WORD, ")NP"], ["a"])) == "(NP (XX a))"
    assert str(from_symbols([], ["a"])) == "(XX a)"


def test_a_constituent_without_a_label_has_no_symbols():
    tree = parse("( (S (NP (DT the) (NN cat)) (VP (VBZ sits))) (. .) )")
    symbols = to_symbols(tree)
    assert symbols == ["(S", "(NP", WORD, WORD, ")NP", "(VP", WORD, ")VP", ")S", WORD]
    found = from_symbols(symbols, tree.words)
    assert found.words == tree.words
    assert found.label == "S"
