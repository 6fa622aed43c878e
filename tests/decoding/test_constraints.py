"""Rules on tokens against enumeration of all sequences that keep them, plain loops, and the
repetition penalty in float64.
"""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import BOS, EOS, PAD, UNK, Rules, Table, decode

from keras_transformer.decoding import BeamSearch, GreedySearch, Sampling
from keras_transformer.decoding.constraints import Constraints

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
