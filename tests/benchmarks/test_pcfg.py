"""The trees of a PCFG are as likely as those that NLTK's own parser finds by the same rules."""

import pytest

from pipelines.trees import parse

nltk = pytest.importorskip("nltk")
pcfg = pytest.importorskip("benchmarks.paper.pcfg")

TREES = [
    "(S (NP (D the) (N dog)) (VP (V saw) (NP (D the) (N cat) (PP (P with) (NP (N eyes))))))",
    "(S (NP (N cats)) (VP (V saw) (NP (D the) (N dog)) (PP (P with) (NP (N eyes)))))",
    "(S (NP (D the) (N cat)) (VP (V slept)) (ADVP (R well)))",
    "(S (NP (D the) (N dog) (PP (P with) (NP (N cats)))) (VP (V slept)))",
    "(FRAG (NP (N eyes)))",
]
SENTENCES = ["the dog saw the cat with eyes", "the cat with eyes slept dell", "eyes saw the dog"]


@pytest.fixture(scope="module")
def grammar():
    return pcfg.Grammar([parse(tree) for tree in TREES])


def log_probability(grammar, tree):
    """Of a tree in brackets, by NLTK's rules."""
    made = pcfg.binary(parse(tree), grammar.words, 1)
    start = nltk.Production(pcfg.START, [nltk.Nonterminal(made.label())])
    of = {(rule.lhs(), rule.rhs()): rule.logprob() for rule in grammar.rules}
    return sum(of[rule.lhs(), rule.rhs()] for rule in [start, *made.productions()])


@pytest.mark.parametrize("sentence", SENTENCES)
def test_no_tree_is_likelier(grammar, sentence):
    words = sentence.split()
    known = [word if word in grammar.words else pcfg.signature(word) for word in words]
    parser = nltk.ViterbiParser(nltk.grammar.PCFG(pcfg.START, grammar.rules))
    best = next(parser.parse(known))
    found = grammar.parse(words)
    assert parse(found).words == words
    assert log_probability(grammar, found) == pytest.approx(best.logprob())


def test_a_tree_comes_back_with_its_chains(grammar):
    assert grammar.parse(["eyes"]) == TREES[-1]
    assert grammar.parse(["the", "cat", "slept", "well"]) == TREES[2]


def test_a_word_that_never_came_is_one_that_came_once(grammar):
    # "well" came once, and "dell" ends as it does.
    assert pcfg.signature("dell") == pcfg.signature("well")
    assert grammar.parse(["the", "cat", "slept", "dell"]) == TREES[2].replace("well", "dell")


def test_without_rules_for_it_a_sentence_gets_a_flat_tree(grammar):
    assert grammar.parse(["saw", "saw"]) == "(S (XX saw) (XX saw))"
