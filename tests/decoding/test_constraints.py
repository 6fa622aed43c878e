"""Rules on tokens, on the spans of a source, and on trees: searches keep them, against enumeration
of all sequences that do, plain loops, and random models; a stack checks the spans.
"""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import (
    BOS,
    EOS,
    PAD,
    UNK,
    Rules,
    Table,
    decode,
    length_penalty,
    random_model,
)

from keras_transformer.decoding import BeamSearch, GreedySearch, Sampling
from keras_transformer.decoding.candidates import FREE
from keras_transformer.decoding.constraints import Constraints, SpanConstraints
from keras_transformer.decoding.other_beams import BEAMS
from keras_transformer.decoding.tree_constraints import TreeConstraints
from pipelines.trees.linearization import alphabet_of, from_symbols, to_symbols

PREFIXES = st.lists(st.sampled_from([UNK, 4, 5]), max_size=4).map(tuple)
SENTENCES = st.lists(
    st.tuples(st.integers(0, 2**32), st.integers(1, 5), st.integers(0, 6), PREFIXES),
    min_size=2,
    max_size=4,
)
NGRAMS = st.integers(0, 3)
# Seed, limit, minimum, prefix: each sentence exercises one rule, the last all.
VARIED = [
    (1, 5, 0, ()),
    (2, 5, 4, ()),
    (3, 2, 5, ()),
    (4, 2, 0, (4, 4)),
    (5, 1, 0, (5, UNK, 5, UNK)),
    (6, 5, 4, (4, 4, 5)),
]


class Centred(Table):
    """Logits of both signs."""

    def logits(self, prefixes):
        return super().logits(prefixes) - np.float32(8)


class Penalized(Centred):
    """Divide positive logits of tokens in the prefix by theta, and multiply negative ones."""

    def __init__(self, seed, words, theta):
        super().__init__(seed, words)
        self.theta = theta

    def logits(self, prefixes):
        logits = super().logits(prefixes).astype(np.float64)
        for row, prefix in zip(logits, np.asarray(prefixes), strict=True):
            for token in set(prefix.tolist()):
                row[token] = row[token] / self.theta if row[token] > 0 else row[token] * self.theta
        return logits


def decode_all(search, sentences, words, table=Table, **more):
    """Decode a batch of (seed, limit, minimum, prefix)."""
    seeds, limits, minima, prefixes = zip(*sentences, strict=True)
    return decode(search, [table(seed, words) for seed in seeds], limits, minima, prefixes, **more)


@settings(max_examples=6)
@example(sentences=VARIED, ngram=0, n=10**6)
@example(sentences=VARIED, ngram=1, n=10**6)
@example(sentences=VARIED, ngram=2, n=10**6)
@example(sentences=VARIED, ngram=3, n=10**6)
@given(sentences=SENTENCES, ngram=NGRAMS, n=st.sampled_from([1, 3, 20]))
def test_a_beam_of_everything_equals_enumeration_of_what_keeps_the_rules(sentences, ngram, n):
    """With the same scores as without rules."""
    rules = [Rules(minimum, prefix, ngram) for _, _, minimum, prefix in sentences]
    most = max(rule.grown(limit) for rule, (_, limit, _, _) in zip(rules, sentences, strict=True))
    beam_size = sum(4**length for length in range(most))
    n = min(n, beam_size)
    search = BeamSearch(beam_size, 0.6, n, constraints=Constraints(ngram))
    rows = zip(decode_all(search, sentences, 3), rules, sentences, strict=True)
    for hypotheses, rule, (seed, limit, _, _) in rows:
        expected = enumeration.n_best(Table(seed, 3).log_probabilities, limit, 0.6, None, rule)
        enumeration.assert_n_best(hypotheses, expected, n)


@settings(max_examples=8)
@given(sentences=SENTENCES, ngram=NGRAMS, beam_size=st.integers(2, 4))
def test_a_narrow_beam_equals_the_slow_search_under_the_same_rules(sentences, ngram, beam_size):
    results = decode_all(
        BeamSearch(beam_size, 0.6, beam_size, constraints=Constraints(ngram)), sentences, 4
    )
    for hypotheses, (seed, limit, minimum, prefix) in zip(results, sentences, strict=True):
        rules = Rules(minimum, prefix, ngram)
        expected = enumeration.beam_search(
            Table(seed, 4).log_probabilities, limit, beam_size, 0.6, beam_size, rules
        )
        enumeration.assert_lists_equal(hypotheses, expected)


@settings(max_examples=12)
@given(
    sentences=SENTENCES,
    ngram=NGRAMS,
    words=st.integers(1, 4),
    more=st.integers(0, 8),
    theta=st.sampled_from([1.0, 0.5, 1.2, 3.0]),
)
def test_greedy_search_equals_a_loop_over_allowed_tokens(sentences, ngram, words, more, theta):
    sentences = [
        (seed, limit + more, minimum, tuple(min(id_, 3 + words) for id_ in prefix))
        for seed, limit, minimum, prefix in sentences
    ]
    results = decode_all(GreedySearch(Constraints(ngram, theta)), sentences, words, Centred)
    for hypotheses, (seed, limit, minimum, prefix) in zip(results, sentences, strict=True):
        expected = enumeration.likeliest(
            Penalized(seed, words, theta), limit, Rules(minimum, prefix, ngram)
        )
        enumeration.assert_lists_equal(hypotheses, expected)


@pytest.mark.parametrize("theta", [0.5, 1.0, 1.3])
def test_a_repetition_penalty_equals_the_formula_whatever_the_tokens(theta):
    """In logits, and in the scores of a beam that holds everything."""
    logits = np.random.default_rng(0).normal(0, 5, (2, 3, 8)).astype("float32")
    history = np.array(
        [[[BOS, 4, 5], [BOS, 4, 4], [BOS, 7, UNK]], [[BOS, 6, 6], [BOS, UNK, 4], [BOS, 5, 7]]],
        np.int32,
    )
    expected = logits.reshape(6, 8).astype("float64")
    for row, tokens in zip(expected, history.reshape(6, 3)[:, 1:], strict=True):
        tokens = np.unique(tokens)
        row[tokens] = np.where(row[tokens] > 0, row[tokens] / theta, row[tokens] * theta)
    sentences = Constraints().wishes(tf.constant([9, 9]))
    penalized, allowed, _, may_end = Constraints(0, theta)(
        tf.constant(logits), tf.constant(history), 2, sentences
    )
    np.testing.assert_allclose(penalized, expected, rtol=1e-6)
    np.testing.assert_array_equal(allowed, penalized)
    assert may_end is None
    [hypotheses] = decode(
        BeamSearch(85, 0.6, 85, constraints=Constraints(0, theta)), [Centred(3, 3)], [4]
    )
    table = Penalized(3, 3, theta)
    assert len(hypotheses) == 85
    enumeration.assert_n_best(
        hypotheses, enumeration.n_best(table.log_probabilities, 4, 0.6, None), len(hypotheses)
    )


@pytest.mark.parametrize(
    "make_search",
    [
        GreedySearch,
        lambda rules: BeamSearch(1, constraints=rules),
        lambda rules: BeamSearch(3, 0.6, 3, constraints=rules),
        lambda rules: Sampling(3, constraints=rules),
        lambda rules: Sampling(3, top_k=2, constraints=rules),
        lambda rules: Sampling(3, top_p=0.5, constraints=rules),
    ],
    ids=["greedy", "beam of 1", "beam of 3", "sampling", "top_k", "top_p"],
)
def test_where_everything_is_barred_the_search_ends_with_padding_and_minus_infinity(make_search):
    """UNK, the only word, may not come twice, and EOS not before the minimum."""
    stepper = enumeration.TableStepper([Table(seed, 0) for seed in range(3)])
    ids, scores = make_search(Constraints(1))(
        stepper, tf.range(3), tf.constant([9, 2, 9]), minima=tf.constant([5, 5, 1])
    )
    assert np.isneginf(scores.numpy()[0]).all()
    assert (ids.numpy()[0] == PAD).all()
    assert np.isfinite(scores.numpy()[1:, 0]).all()
    assert ids.numpy()[1, 0, :2].tolist() == [UNK, EOS]


SIZE = 12
MARKS = np.array([5, 6, 7, 9], np.int32)
SOURCES = 60
random = np.random.default_rng(3)
COUNTS = random.integers(0, 3, (SOURCES, len(MARKS)))
# In every third sentence the second mark closes the first, and the fourth the third.
PAIRED = np.arange(SOURCES) % 3 == 0
COUNTS[PAIRED] = 1
CLOSES = np.where(PAIRED[:, None], [-1, 0, -1, 2], -1)
SPAN_LIMITS = random.integers(1, 15, SOURCES)
SPAN_SEARCHES = {
    "greedy": GreedySearch,
    **{
        name: lambda rules, kind=kind: kind(4, num_hypotheses=3, constraints=rules)
        for name, kind in BEAMS.items()
    },
    "samples": lambda rules: Sampling(3, num_hypotheses=3, seed=1, constraints=rules),
}


def rules(rows=slice(None), **more):
    counts, closes = (tf.constant(array[rows], tf.int32) for array in (COUNTS, CLOSES))
    return SpanConstraints(marks=MARKS, count=counts, opened_by=closes, **more)


def outputs(search, rows=slice(None), **more):
    numbers = tf.constant(np.arange(SOURCES, dtype=np.int32)[rows])
    ids, scores = search(random_model(SIZE), numbers, tf.constant(SPAN_LIMITS[rows]), **more)
    return ids.numpy(), scores.numpy()


def keeps(ids, counts, closes):
    """Whether ids end in EOS, have each mark as often as wanted, and close marks in order."""
    ids = [int(id_) for id_ in ids if id_ != PAD]
    if ids[-1] != EOS or EOS in ids[:-1]:
        return False
    if any(ids.count(mark) != count for mark, count in zip(MARKS, counts, strict=True)):
        return False
    opened = []
    for id_ in ids:
        if id_ not in MARKS:
            continue
        number = int(np.flatnonzero(id_ == MARKS)[0])
        if number in closes:
            opened.append(number)
        elif closes[number] >= 0 and (not opened or opened.pop() != closes[number]):
            return False
    return True


def kept_by_each(ids, scores):
    """Return for each hypothesis that was found whether it keeps its spans."""
    return [
        keeps(hypothesis, count, closes)
        for hypotheses, of_each, count, closes in zip(ids, scores, COUNTS, CLOSES, strict=True)
        for hypothesis, score in zip(hypotheses, of_each, strict=True)
        if score > -np.inf
    ]


def test_the_checker_tells_kept_spans_from_broken_ones():
    assert keeps([5, 8, 6, EOS, PAD], (1, 1, 0, 0), (-1, 0, -1, -1))
    assert keeps([5, 7, 9, 6, EOS], (1, 1, 1, 1), (-1, 0, -1, 2))
    assert not keeps([5, 7, 6, 9, EOS], (1, 1, 1, 1), (-1, 0, -1, 2))
    assert not keeps([6, 5, EOS], (1, 1, 0, 0), (-1, 0, -1, -1))
    assert not keeps([5, 5, EOS], (1, 0, 0, 0), (-1, -1, -1, -1))
    assert not keeps([5, 8], (1, 0, 0, 0), (-1, -1, -1, -1))


@pytest.mark.parametrize("name", SPAN_SEARCHES)
def test_every_hypothesis_keeps_the_spans(name):
    ids, scores = outputs(SPAN_SEARCHES[name](rules()))
    assert (scores[:, 0] > -np.inf).all()
    assert all(kept_by_each(ids, scores))


def test_a_limit_grows_only_for_marks():
    ids, _ = outputs(GreedySearch(rules()))
    lengths = np.count_nonzero(ids[:, 0] != PAD, axis=1)
    room = np.maximum(SPAN_LIMITS, np.where(COUNTS.sum(1) > 0, COUNTS.sum(1) + 1, 0))
    assert (lengths <= room).all()
    assert (lengths == room)[COUNTS.sum(1) > SPAN_LIMITS].all()


def test_without_spans_the_search_only_bars_marks():
    rows = np.flatnonzero(np.arange(SOURCES) % 3 == 1)
    none = tf.zeros([len(rows), len(MARKS)], tf.int32)
    barred_marks = Constraints(barred=tuple(MARKS.tolist()))
    ruled = SpanConstraints(marks=MARKS, count=none, opened_by=none - 1)
    for search in (SPAN_SEARCHES["greedy"], SPAN_SEARCHES["leaving"]):
        pairs = zip(outputs(search(ruled), rows), outputs(search(barred_marks), rows), strict=True)
        for ours, theirs in pairs:
            np.testing.assert_array_equal(ours, theirs)


def test_a_sentence_does_not_depend_on_its_batch():
    whole, _ = outputs(BEAMS["leaving"](4, constraints=rules()))
    for row in range(0, SOURCES, 16):
        alone, _ = outputs(BEAMS["leaving"](4, constraints=rules([row])), [row])
        np.testing.assert_array_equal(alone[0, 0], whole[row, 0, : alone.shape[2]])


def test_the_score_stays_that_of_the_model():
    ids, scores = outputs(GreedySearch(rules()))
    model = random_model(SIZE)
    for row in range(0, SOURCES, 5):
        history = [BOS, *(int(id_) for id_ in ids[row, 0] if id_ != PAD)]
        total = 0.0
        for position, (before, token) in enumerate(itertools.pairwise(history)):
            source = tf.constant([row])
            logits, *_ = model(tf.constant([before]), position, model.start(1), source)
            total += float(tf.nn.log_softmax(tf.reshape(logits, [-1]))[token])
        assert scores[row, 0] == pytest.approx(total, abs=1e-4)


def test_prefixes_and_minima_hold_with_the_rules():
    prefixes = np.full((SOURCES, 2), 10)
    ids, scores = outputs(
        BEAMS["leaving"](4, constraints=rules()), minima=tf.fill([SOURCES], 4), prefixes=prefixes
    )
    assert (ids[:, 0, :2] == 10).all()
    assert all(kept_by_each(ids, scores))
    assert (np.count_nonzero(ids[:, 0] != PAD, axis=1) >= np.minimum(SPAN_LIMITS, 4)).all()


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
TREE_LIMITS = [1 + 7 * number % 18 for number in range(200)]


def hypotheses_of(search, words=WORDS, limits=TREE_LIMITS, **more):
    """Return all hypotheses of each sentence, without padding."""
    model = random_model(len(PIECES))
    ids, scores = search(model, tf.range(len(words)), tf.constant(limits), **more)
    return [
        [row[row != PAD].tolist() for row, score in zip(*sentence, strict=True) if score > -np.inf]
        for sentence in zip(ids.numpy(), scores.numpy(), strict=True)
    ]


TREE_SEARCHES = {
    "greedy": GreedySearch,
    "beam of 4": lambda rules: BeamSearch(4, 0.3, 4, constraints=rules),
    "sampling": lambda rules: Sampling(2, num_hypotheses=2, constraints=rules),
    "top_k and top_p": lambda rules: Sampling(1, 2.0, 3, 0.5, constraints=rules),
}


@pytest.mark.parametrize("make", TREE_SEARCHES.values(), ids=TREE_SEARCHES)
def test_every_hypothesis_is_a_tree_over_the_words(make):
    results = hypotheses_of(make(rules_for(WORDS)))
    for hypotheses, words, limit in zip(results, WORDS, TREE_LIMITS, strict=True):
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


@pytest.mark.parametrize("make", TREE_SEARCHES.values(), ids=TREE_SEARCHES)
def test_words_come_in_the_order_of_the_sentence(make):
    random = np.random.default_rng(1)
    leaves = [
        [random.choice([ONE, TWO]), *random.choice([ONE, TWO, MORE], random.integers(0, 6))]
        for _ in range(100)
    ]
    search = make(rules_for_words(leaves))
    for hypotheses, row in zip(
        hypotheses_of(search, leaves, TREE_LIMITS[:100]), leaves, strict=True
    ):
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
