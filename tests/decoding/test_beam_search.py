"""Beam search against brute force: all sequences of a random autoregressive table, and a plain beam
search of one sentence at a time; and with the coverage penalty, whose attention is drawn from a
seed.
"""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import ATOL, EOS, PAD, UNK, Table, assert_lists_equal, decode

from keras_transformer.decoding import (
    BeamSearch,
    DecodingOptions,
    GreedySearch,
    Sampling,
    length_penalty,
)
from keras_transformer.decoding.beam_search import coverage_penalty
from keras_transformer.decoding.constraints import Constraints
from keras_transformer.decoding.penalty_sweep import PenaltySweep

SEEDS = st.integers(0, 2**32)
WORDS = st.integers(3, 5)
LIMITS = st.integers(1, 6)
ALPHAS = st.sampled_from([0.0, 0.6, 1.0])
LEVELS = st.sampled_from([None, 1, 2, 3])


def assert_equals_the_slow_search(tables, limits, beam_size, alpha, n):
    """Each sentence of a batch gets what the oracle's beam search gives it alone."""
    together = decode(BeamSearch(beam_size, alpha, n), tables, limits)
    for hypotheses, table, limit in zip(together, tables, limits, strict=True):
        assert_lists_equal(
            hypotheses, enumeration.beam_search(table.log_probabilities, limit, beam_size, alpha, n)
        )


@settings(max_examples=10)
@example(sentences=[(0, 6, None)], words=5, alpha=0.6, n=10**6)
@given(
    sentences=st.lists(st.tuples(SEEDS, LIMITS, LEVELS), min_size=1, max_size=4),
    words=WORDS,
    alpha=ALPHAS,
    n=st.sampled_from([1, 3, 20, 10**6]),
)
def test_a_beam_that_holds_everything_equals_enumeration(sentences, words, alpha, n):
    tables = [Table(seed, words, levels) for seed, _, levels in sentences]
    limits = [limit if words < 5 else min(limit, 5) for _, limit, _ in sentences]
    enumerated = [
        enumeration.n_best(table.log_probabilities, limit, alpha, None)
        for table, limit in zip(tables, limits, strict=True)
    ]
    beam_size = max(map(len, enumerated))
    search = BeamSearch(beam_size, alpha, min(n, beam_size))
    for hypotheses, sequences in zip(decode(search, tables, limits), enumerated, strict=True):
        enumeration.assert_n_best(hypotheses, sequences, n)


@settings(max_examples=8)
@given(
    sentences=st.lists(st.tuples(SEEDS, st.integers(1, 12)), min_size=4, max_size=9),
    words=WORDS,
    beam_size=st.integers(1, 6),
    alpha=ALPHAS,
    data=st.data(),
)
def test_a_narrow_beam_equals_the_slow_search(sentences, words, beam_size, alpha, data):
    tables = [Table(seed, words) for seed, _ in sentences]
    limits = [limit for _, limit in sentences]
    n = data.draw(st.integers(1, beam_size))
    assert_equals_the_slow_search(tables, limits, beam_size, alpha, n)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_among_equal_scores_the_earlier_hypothesis_and_the_lower_id_win(beam_size, alpha):
    table = Table(seed=1, words=3, levels=1)
    assert_equals_the_slow_search([table], [6], beam_size, alpha, n=beam_size)


@settings(max_examples=6)
@given(data=st.data(), levels=LEVELS)
def test_options_of_each_sentence_give_what_a_search_with_these_options_gives(data, levels):
    requests = data.draw(
        st.lists(
            st.tuples(SEEDS, LIMITS, st.integers(1, 5), ALPHAS, st.integers(1, 5)),
            min_size=2,
            max_size=4,
        )
    )
    seeds, limits, widths, alphas, counts = zip(*requests, strict=True)
    counts = np.minimum(counts, widths).tolist()
    tables = [Table(seed, 4, levels) for seed in seeds]
    search = BeamSearch(tf.constant(widths), tf.constant(alphas, tf.float32), tf.constant(counts))
    rows = zip(decode(search, tables, limits), tables, limits, widths, alphas, counts, strict=True)
    for hypotheses, table, limit, width, alpha, n in rows:
        [alone] = decode(BeamSearch(width, alpha, n), [table], [limit])
        assert hypotheses == alone


@pytest.mark.parametrize(
    ("name", "values"),
    [("beam_size", [1, 3]), ("length_penalty", [0.0, 2.0]), ("num_hypotheses", [1, 2])],
)
def test_one_option_of_each_sentence_gives_what_searches_with_numbers_give(name, values):
    numbers = {"beam_size": 3, "length_penalty": 0.6, "num_hypotheses": 1}
    tables = [Table(seed, 4) for seed in range(2)]
    together = decode(BeamSearch(**numbers | {name: tf.constant(values)}), tables, [6, 6])
    for hypotheses, table, value in zip(together, tables, values, strict=True):
        assert decode(BeamSearch(**numbers | {name: value}), [table], [6]) == [hypotheses]


@pytest.mark.parametrize("search", [GreedySearch(), BeamSearch(3, 0.6, 2)], ids=["greedy", "beam"])
def test_other_sentences_change_no_bit_of_a_score_so_that_ties_stay_ties(search):
    tables = [Table(seed, 4, levels=(None, 1, 2, 3)[seed % 4]) for seed in range(8)]
    limits = [2 + seed // 4 * 5 for seed in range(8)]
    pairs = zip(tables, limits, strict=True)
    alone = [decode(search, [table], [limit])[0] for table, limit in pairs]
    assert decode(search, tables, limits) == alone
    assert decode(search, tables[::-1], limits[::-1]) == alone[::-1]


class Fixed(Table):
    """Logits that depend on the position alone; the last row stays."""

    def __init__(self, *rows):
        super().__init__(0, len(rows[0]) - 4)
        self.rows = np.array(rows, np.float32)

    def logits(self, prefixes):
        return np.tile(self.rows[min(prefixes.shape[1], len(self.rows) - 1)], (len(prefixes), 1))


def test_the_search_goes_on_for_a_hypothesis_that_can_win_only_at_its_limit():
    """EOS at once scores log 0.5655 = -0.570; the other path log 0.4345 / 1.5 = -0.556 at length 4,
    but still -0.625 at length 3.
    """
    never = -30.0
    table = Fixed(
        [never, never, never, np.log(0.5655), np.log(0.4345)],
        [never] * 4 + [0],
        [never] * 4 + [0],
        [never] * 3 + [0, never],
    )
    [[(ids, score)]] = decode(BeamSearch(16, 1.0), [table], [4])
    assert ids == (4, 4, 4, EOS)
    assert score == pytest.approx(np.log(0.4345) / 1.5, rel=1e-5, abs=ATOL)
    assert decode(BeamSearch(16, 1.0), [table], [3])[0][0][0] == (EOS,)


def test_hypotheses_beyond_the_sequences_that_exist_score_minus_infinity():
    ids, scores = BeamSearch(3, 0.6, 3)(
        enumeration.TableStepper([Table(0, 3)]), tf.range(1), tf.constant([1])
    )
    assert ids.numpy().tolist() == [[[EOS], [PAD], [PAD]]]
    assert np.isneginf(scores.numpy()[0]).tolist() == [False, True, True]


@pytest.mark.parametrize(
    "search",
    [GreedySearch(), BeamSearch(3), Sampling(2), Sampling(2, top_k=2), Sampling(2, top_p=0.5)],
    ids=["greedy", "beam", "sampling", "top_k", "top_p"],
)
def test_the_search_ends_at_the_limit_if_logits_are_nan(search):
    stepper = enumeration.TableStepper([Fixed([np.nan] * 6)])
    ids, _ = search(stepper, tf.range(1), tf.constant([5]))
    assert ids.shape[-1] <= 5


def test_the_length_penalty_is_wu_et_al_s():
    lengths = np.arange(1, 200)
    for alpha in (0.0, 0.6, 1.0):
        expected = ((5 + lengths) / 6) ** alpha
        np.testing.assert_allclose(length_penalty(tf.constant(lengths), alpha), expected, rtol=1e-6)
    # The exponent may be an integer.
    assert float(length_penalty(7, tf.constant(1))) == 2


def test_barred_ids_never_come():
    barred = Constraints(barred=(UNK, 4))
    tables = [Table(seed, 3) for seed in range(6)]
    for search in (BeamSearch(3, constraints=barred), GreedySearch(barred)):
        for sentence in decode(search, tables, [6] * len(tables)):
            assert not {UNK, 4} & {token for ids, _ in sentence for token in ids}
    with pytest.raises(ValueError, match=r"`barred` must be ids below 7\. Received: 7 among them"):
        decode(GreedySearch(Constraints(barred=(4, 7))), tables, [6] * len(tables))
    free = decode(BeamSearch(3), tables, [6] * len(tables))
    assert {UNK, 4} & {token for sentence in free for ids, _ in sentence for token in ids}


ALL, LIMIT, COVERED_WORDS = 1 + 4 + 16 + 64, 4, 3


class Attentive(Table):
    """A table whose attention to `length` source tokens depends on the whole prefix."""

    def __init__(self, seed, length):
        super().__init__(seed, COVERED_WORDS)
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
def test_a_beam_that_holds_everything_equals_enumeration_with_coverage(sentences, alpha, beta, n):
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
