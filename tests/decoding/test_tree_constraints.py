"""Searches that can write only trees, on random models and against enumeration of all trees."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from oracles import enumeration
from oracles.enumeration import BOS, EOS, PAD, UNK, Table, decode, length_penalty, random_model

from keras_transformer.decoding import BeamSearch, GreedySearch, Sampling
from keras_transformer.decoding.candidates import FREE
from keras_transformer.decoding.tree_constraints import TreeConstraints
from pipelines.trees.linearization import alphabet_of, from_symbols, to_symbols

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
# ADVP, which no bracket opens, is no label.
SYMBOLS = ["(S", ")S", "(NP", ")NP", "XX", "(VP", ")VP", ")ADVP"]
PIECES = [*SPECIAL, *(f"\u2581{symbol}" for symbol in SYMBOLS), "\u2581word", "(S", "XX"]
S, NOT_S, NP, NOT_NP, XX, VP, NOT_VP = range(4, 11)


def rules_for(words, pieces=PIECES, **more):
    alphabet = alphabet_of(pieces)
    ids = {"opens": alphabet.opens, "closes": alphabet.closes, "is_leaf": alphabet.is_leaf}
    return TreeConstraints(**ids, count=tf.constant(words, tf.int32), **more)


def is_tree(ids, words):
    """Whether ids are one tree over `words` words, without empty constituents, and EOS."""
    *ids, end = ids
    stack = [[]]
    for number, id_ in enumerate(ids):
        if id_ in (S, NP, VP):
            stack.append([id_])
        elif id_ == XX:
            stack[-1].append(XX)
        elif id_ in (NOT_S, NOT_NP, NOT_VP) and len(stack) > 1:
            label, *children = stack.pop()
            if label != id_ - 1 or not children or (len(stack) == 1 and number + 1 < len(ids)):
                return False
            stack[-1].append(label)
        else:
            return False
    return end == EOS and ids.count(XX) == words and stack in ([[S]], [[NP]], [[VP]])


def test_the_checker_tells_trees_from_broken_ones():
    assert is_tree([S, NP, XX, NOT_NP, XX, NOT_S, EOS], 2)
    broken = [
        [S, NP, XX, NOT_NP, XX, NOT_S],
        [S, XX, XX, NOT_NP, EOS],
        [S, XX, NOT_S, S, XX, NOT_S, EOS],
        [S, NP, NOT_NP, XX, XX, NOT_S, EOS],
        [S, NP, XX, NOT_S, NOT_NP, XX, EOS],
        [S, XX, UNK, XX, NOT_S, EOS],
        [XX, XX, EOS],
        [S, XX, XX, EOS],
    ]
    assert not any(is_tree(ids, 2) for ids in broken)
    assert not is_tree([S, XX, NOT_S, EOS], 2)


WORDS = [1 + 5 * number % 7 for number in range(200)]
# Many limits are too small for any tree.
LIMITS = [1 + 7 * number % 18 for number in range(200)]


def hypotheses_of(search, words=WORDS, limits=LIMITS, **more):
    """Return all hypotheses of each sentence, without padding."""
    model = random_model(len(PIECES))
    ids, scores = search(model, tf.range(len(words)), tf.constant(limits), **more)
    return [
        [row[row != PAD].tolist() for row, score in zip(*sentence, strict=True) if score > -np.inf]
        for sentence in zip(ids.numpy(), scores.numpy(), strict=True)
    ]


SEARCHES = {
    "greedy": GreedySearch,
    "beam of 4": lambda rules: BeamSearch(4, 0.3, 4, constraints=rules),
    "sampling": lambda rules: Sampling(2, num_hypotheses=2, constraints=rules),
    "top_k and top_p": lambda rules: Sampling(1, 2.0, 3, 0.5, constraints=rules),
}


@pytest.mark.parametrize("make", SEARCHES.values(), ids=SEARCHES)
def test_every_hypothesis_is_a_tree_over_the_words(make):
    results = hypotheses_of(make(rules_for(WORDS)))
    for hypotheses, words, limit in zip(results, WORDS, LIMITS, strict=True):
        assert hypotheses
        for ids in hypotheses:
            assert is_tree(ids, words)
            assert len(ids) <= max(limit, words + 3)
            symbols = [PIECES[id_].removeprefix("\u2581") for id_ in ids[:-1]]
            assert to_symbols(from_symbols(symbols, ["word"] * words)) == symbols


def trees_over(words, most):
    """Return all trees over `words` words with at most `most` symbols, by a grammar."""

    def forests(words, most):
        """Yield all sequences of children, the empty one if no word is left."""
        if words == 0:
            yield ()
        if words and most:
            for rest in forests(words - 1, most - 1):
                yield (XX, *rest)
        for inside in range(1, words + 1):
            for first in constituents(inside, most):
                for rest in forests(words - inside, most - len(first)):
                    yield (*first, *rest)

    def constituents(words, most):
        if most < words + 2:
            return
        for label, inner in itertools.product((S, NP), list(forests(words, most - 2))):
            yield (label, *inner, label + 1)

    return list(constituents(words, most))


@pytest.mark.parametrize(("words", "limit"), [(1, 8), (2, 8), (3, 8), (4, 2), (5, 8)])
def test_a_beam_that_holds_everything_equals_enumeration_of_all_trees(words, limit):
    pieces = PIECES[: XX + 1]
    table = Table(words, XX - EOS)
    trees = [(*tree, EOS) for tree in trees_over(words, max(limit, words + 3) - 1)]
    assert all(is_tree(tree, words) for tree in trees)
    assert len(set(trees)) == len(trees)
    search = BeamSearch(600, 0.6, len(trees), constraints=rules_for([words], pieces))
    [hypotheses] = decode(search, [table], [limit])
    scores = sorted((table.score(tree, 0.6) for tree in trees), reverse=True)
    assert {ids for ids, _ in hypotheses} == set(trees)
    np.testing.assert_allclose([score for _, score in hypotheses], scores, rtol=1e-5, atol=1e-5)


# Brackets and words: "one", "two", and "s", which continues either.
WORD_PIECES = [*PIECES[:XX], *PIECES[VP : NOT_VP + 2], "<0x00>", "\u2581one", "\u2581two", "s"]
ONE, TWO, MORE = range(len(WORD_PIECES) - 3, len(WORD_PIECES))


def rules_for_words(leaves, **more):
    """Return rules for sentences of such words, given as ids."""
    alphabet = alphabet_of(WORD_PIECES)
    assert alphabet.leaves == "words"
    padded_leaves = tf.constant(enumeration.padded(leaves), tf.int32)
    more |= {"leaves": padded_leaves, "begins_word": alphabet.takes >= 0}
    return rules_for([len(row) for row in leaves], WORD_PIECES, **more)


def words_of(ids):
    """Return the leaves among ids, and whether each "s" continues a word."""
    follows = all(ids[here - 1] in (ONE, TWO, MORE) for here, id_ in enumerate(ids) if id_ == MORE)
    return [id_ for id_ in ids if id_ in (ONE, TWO, MORE)], follows


@pytest.mark.parametrize("make", SEARCHES.values(), ids=SEARCHES)
def test_words_come_in_the_order_of_the_sentence(make):
    random = np.random.default_rng(1)
    leaves = [
        [random.choice([ONE, TWO]), *random.choice([ONE, TWO, MORE], random.integers(0, 6))]
        for _ in range(100)
    ]
    search = make(rules_for_words(leaves))
    for hypotheses, row in zip(hypotheses_of(search, leaves, LIMITS[:100]), leaves, strict=True):
        assert hypotheses
        for ids in hypotheses:
            assert words_of(ids) == (row, True)
            # Brackets are balanced: as a tree with XX in the place of each leaf.
            tree = [XX if id_ in (ONE, TWO, MORE) else id_ + (id_ >= XX) for id_ in ids[:-1]]
            assert is_tree([*tree, ids[-1]], len(row))


def test_a_tree_begins_with_its_prefix():
    prefixes = [(S,), (S, XX), (NP, XX, VP), (S, NP, XX, NOT_NP), ()]
    words = [2, 3, 4, 2, 1]
    limits = [1, 4, 12, 8, 1]
    padded = tf.constant(enumeration.padded(prefixes))
    for make in (GreedySearch, lambda rules: BeamSearch(3, constraints=rules)):
        results = hypotheses_of(make(rules_for(words)), words, limits, prefixes=padded)
        for [ids], prefix, count in zip(results, prefixes, words, strict=True):
            assert tuple(ids[: len(prefix)]) == prefix
            assert is_tree(ids, count)


def test_a_search_ends_even_if_its_prefix_begins_no_tree():
    prefixes = [(UNK, XX), (NOT_S, XX), (S, XX, NOT_S, XX), (S, XX, XX, XX, VP), (EOS, NP)]
    for make in (GreedySearch, lambda rules: BeamSearch(3, constraints=rules)):
        padded_prefixes = tf.constant(enumeration.padded(prefixes))
        search = make(rules_for([2] * len(prefixes)))
        ids, scores = search(
            random_model(len(PIECES)), tf.range(5), tf.constant([9] * 5), prefixes=padded_prefixes
        )
        assert np.isfinite(scores.numpy()).all()
        assert all(EOS in row for row in ids.numpy()[:, 0])


def test_a_sentence_without_words_gives_only_eos():
    results = hypotheses_of(GreedySearch(rules_for([0, 1, 0])), [0, 1, 0], [9, 9, 1])
    assert results[0] == results[2] == [[EOS]]
    assert is_tree(results[1][0], 1)


def test_a_tree_may_be_shorter_than_the_minimum_and_scores_are_the_models():
    table = Table(3, len(PIECES) - 4)
    for search in (GreedySearch(rules_for([1])), BeamSearch(2, 0.0, constraints=rules_for([1]))):
        [[(ids, score)]] = decode(search, [table], [4], minima=[9])
        assert len(ids) == 4
        assert score == pytest.approx(table.score(ids, 0.0) / length_penalty(4, 0.0), rel=1e-5)


def test_other_sentences_change_nothing():
    def search(words):
        return BeamSearch(3, 0.6, 2, constraints=rules_for(words))

    together = hypotheses_of(search([3, 2, 1]), [3, 2, 1], [8, 7, 9])
    ids, _ = search([2])(random_model(len(PIECES)), tf.constant([1]), tf.constant([7]))
    assert [row[row != PAD].tolist() for row in ids.numpy()[0]] == together[1]


def test_a_repetition_penalty_changes_logits():
    rules = rules_for([2], repetition_penalty=3.0)
    logits = tf.random.stateless_normal([1, 1, len(PIECES)], [1, 2])
    history = tf.constant([[[BOS, S, XX]]])
    penalized, allowed, forced, _ = rules(logits, history, 2, rules.wishes(tf.constant([9])))
    z = logits[0, 0, XX]
    assert penalized[0, XX] == allowed[0, XX] == (z / 3.0 if z > 0 else z * 3.0)
    assert forced == FREE
    assert np.flatnonzero(np.isfinite(allowed[0])).tolist() == [S, NP, XX, VP]
