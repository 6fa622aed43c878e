"""Beam search against brute force: all sequences of a random autoregressive table, and a plain
beam search of one sentence at a time.
"""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import ATOL, EOS, PAD, UNK, Table, assert_lists_equal, decode

from keras_transformer.decoding import BeamSearch, GreedySearch, Sampling, length_penalty
from keras_transformer.decoding.constraints import Constraints

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
