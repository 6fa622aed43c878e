"""The coverage penalty against enumeration of all sequences, with attention drawn from a seed."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import Table

from keras_transformer.decoding import BeamSearch, DecodingOptions
from keras_transformer.decoding.beam_search import coverage_penalty
from keras_transformer.decoding.penalty_sweep import PenaltySweep

ALL, LIMIT, WORDS = 1 + 4 + 16 + 64, 4, 3


class Attentive(Table):
    """A table whose attention to `length` source tokens depends on the whole prefix."""

    def __init__(self, seed, length):
        super().__init__(seed, WORDS)
        self.length = length
        self.scores = Table(seed + 1, length - 4)

    def attention(self, prefixes):
        """float64 (prefixes, length), rows that sum to 1."""
        likely = np.exp(self.scores.logits(prefixes).astype(np.float64) / 3)
        return likely / likely.sum(axis=-1, keepdims=True)

    def coverage_penalty(self, ids, beta):
        """Return beta sum_i log(min(sum_j p_ij, 1)), where EOS attends as well."""
        covered = sum(
            self.attention(np.array([ids[:t]], np.uint64).reshape(1, t))[0] for t in range(len(ids))
        )
        return beta * sum(np.log(min(token, 1.0)) for token in covered)


def best_covered(table, limit, alpha, beta):
    """All (ids, log P / lp + cp), best first."""
    everything = enumeration.n_best(table.log_probabilities, limit, alpha, None)
    return sorted(
        ((ids, score + table.coverage_penalty(ids, beta)) for ids, score in everything),
        key=lambda scored: -scored[1],
    )


class AttentiveStepper(enumeration.TableStepper):
    """Attends to sources of different lengths, padded to `width`."""

    def __init__(self, tables, width):
        super().__init__(tables)
        self.width = width

    def is_token(self, source):
        lengths = np.array([self.tables[number].length for number in np.asarray(source)])
        return tf.constant(np.arange(self.width) < lengths[:, None])

    def __call__(self, ids, position, state, source):
        logits, state, _ = super().__call__(ids, position, state, source)
        prefixes = state["keys"][:, 0, 1:, 0].reshape(*ids.shape, -1)
        attention = np.zeros((*ids.shape, self.width), np.float32)
        for sentence, rows, number in zip(attention, prefixes, np.asarray(source), strict=True):
            table = self.tables[number]
            sentence[:, : table.length] = table.attention(rows)
        return logits, state, attention


def search(tables, limits, alpha, beta, beam_size=ALL, n=ALL, padding=0):
    """`BeamSearch` with attention over sources padded to the longest and `padding` more."""
    stepper = AttentiveStepper(tables, max(table.length for table in tables) + padding)
    search = BeamSearch(beam_size, alpha, n, beta)
    return enumeration.decode(search, tables, limits, stepper=stepper)


def assert_equals_enumeration(tables, alpha, beta, n=ALL, padding=0):
    """A beam that holds everything gives the n best of all sequences, in a batch of sentences with
    different limits.
    """
    limits = [LIMIT - place % 3 for place in range(len(tables))]
    for hypotheses, table, limit in zip(
        search(tables, limits, alpha, beta, n=n, padding=padding), tables, limits, strict=True
    ):
        enumeration.assert_n_best(hypotheses, best_covered(table, limit, alpha, beta), n)


@settings(max_examples=10)
@example(sentences=[(0, 3), (1, 1), (2, 5)], alpha=0.6, beta=0.2, n=ALL)
@given(
    sentences=st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 5)), min_size=1, max_size=3),
    alpha=st.sampled_from([0.0, 0.6, 1.0]),
    beta=st.sampled_from([0.05, 0.2, 3.0]),
    n=st.sampled_from([1, 4, ALL]),
)
def test_a_beam_that_holds_everything_equals_enumeration(sentences, alpha, beta, n):
    assert_equals_enumeration([Attentive(*sentence) for sentence in sentences], alpha, beta, n)


def test_padding_counts_as_covered():
    tables = [Attentive(seed, 3) for seed in range(3)]
    unpadded = search(tables, [4, 3, 2], 0.6, 0.2, 4, 4)
    assert search(tables, [4, 3, 2], 0.6, 0.2, 4, 4, padding=5) == unpadded
    assert_equals_enumeration(tables, 0.6, 0.2, padding=2)


def test_a_narrow_beam_scores_its_ids_by_the_formula_and_other_sentences_change_nothing():
    tables, limits = [Attentive(seed, 2 + seed % 4) for seed in range(6)], [8, 2, 5, 7, 1, 6]
    together = search(tables, limits, 0.6, 0.4, beam_size=3, n=3)
    for hypotheses, table, limit in zip(together, tables, limits, strict=True):
        expected = [
            (ids, table.score(ids, 0.6) + table.coverage_penalty(ids, 0.4)) for ids, _ in hypotheses
        ]
        enumeration.assert_lists_equal(hypotheses, expected)
        [alone] = search([table], [limit], 0.6, 0.4, beam_size=3, n=3)
        assert [ids for ids, _ in alone] == [ids for ids, _ in hypotheses]


def test_it_counts_with_each_length_penalty_of_a_sweep():
    tables, limits = [Attentive(seed, 3) for seed in range(4)], [6] * 4
    alphas = [0.6, 1.0]
    sweep = PenaltySweep.of(
        DecodingOptions(coverage_penalty=0.8), tf.constant([3]), tf.constant(alphas)
    )
    by_sentence = enumeration.decode(sweep, tables, limits, stepper=AttentiveStepper(tables, 3))
    of_each = [search(tables, limits, alpha, 0.8, beam_size=3, n=1) for alpha in alphas]
    for actual, *expected in zip(by_sentence, *of_each, strict=True):
        enumeration.assert_lists_equal(actual, [best for [best] in expected])


def test_a_beam_of_1_beside_wider_ones_is_greedy_search_without_the_penalty():
    tables, limits = [Attentive(seed, 3) for seed in range(4)], [6] * 4
    beams = tf.constant([1, 3, 1, 3])
    greedy, covered = (
        search(tables, limits, 0.0, beta, size, 1) for beta, size in ((0, 1), (0.4, 3))
    )
    expected = [greedy[0], covered[1], greedy[2], covered[3]]
    assert search(tables, limits, 0.0, 0.4, beams, 1) == expected


def test_the_penalty_is_wu_et_al_s_and_finite_where_nothing_is_covered():
    coverage = np.array([[0.3, 1.0, 2.5], [1.0, 1.0, 1.0], [0.5, 0.25, 0.0]], np.float32)
    penalties = coverage_penalty(tf.constant(coverage), 0.4).numpy()
    np.testing.assert_allclose(penalties[:2], [0.4 * np.log(0.3), 0.0], rtol=1e-6)
    assert penalties[2] == pytest.approx(0.4 * np.log(0.125 * 1e-10), rel=1e-6)
