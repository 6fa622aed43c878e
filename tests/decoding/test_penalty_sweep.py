"""One search for several length penalties against a search for each, and against the rules."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import PAD, Table, TableStepper, decode, length_penalty

from keras_transformer.decoding import BeamSearch, DecodingOptions
from keras_transformer.decoding.penalty_sweep import PenaltySweep

ALPHAS = [0.0, 0.6, 1.0, 4.0]


def swept(tables, limits, beam_size, alphas=ALPHAS, **more):
    """For each sentence (ids, score) by each penalty."""
    search = PenaltySweep(tf.constant([beam_size]), tf.constant(alphas, tf.float32))
    return decode(search, tables, limits, **more)


def searched(tables, limits, beam_size, alphas=ALPHAS, **more):
    """The same by a search for each penalty."""
    columns = [decode(BeamSearch(beam_size, alpha), tables, limits, **more) for alpha in alphas]
    return [[found[0] for found in row] for row in zip(*columns, strict=True)]


def assert_equal(found, expected):
    assert [[ids for ids, _ in row] for row in found] == [
        [ids for ids, _ in row] for row in expected
    ]
    scores = [[[score for _, score in row] for row in rows] for rows in (found, expected)]
    np.testing.assert_allclose(*scores, rtol=1e-5, atol=1e-5)


@settings(max_examples=3, deadline=None)
@given(
    sentences=st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 6)), min_size=1, max_size=4),
    beam_size=st.integers(1, 5),
    levels=st.sampled_from([None, 2, 3]),
)
def test_each_penalty_gets_what_a_search_of_its_own_gives(sentences, beam_size, levels):
    tables = [Table(seed, 4, levels) for seed, _ in sentences]
    limits = [limit for _, limit in sentences]
    case = (tables, limits, beam_size, ALPHAS[1:3])
    assert_equal(swept(*case), searched(*case))


@pytest.mark.parametrize(("beam_size", "levels"), [(1, None), (3, None), (3, 1)])
def test_each_penalty_gets_what_the_rules_give_one_sentence(beam_size, levels):
    """With one level all tokens are equally likely: of equal scores the earlier wins."""
    for seed in range(2):
        table = Table(seed, 4, levels)
        expected = [
            enumeration.beam_search(table.log_probabilities, 6, beam_size, alpha)[0]
            for alpha in ALPHAS
        ]
        assert_equal(swept([table], [6], beam_size), [expected])


def test_prefixes_and_least_lengths_hold():
    tables = [Table(seed, 4) for seed in range(4)]
    alphas = ALPHAS[1:3]
    more = {"alphas": alphas, "minima": [4, 1, 2, 5], "prefixes": [(5,), (), (6, 5), ()]}
    assert_equal(swept(tables, [7] * 4, 3, **more), searched(tables, [7] * 4, 3, **more))


def test_penalties_choose_different_translations_and_longer_ones_as_they_grow():
    tables = [Table(seed, 4) for seed in range(30)]
    rows = swept(tables, [10] * 30, 4)
    lengths = np.array([[len(ids) for ids, _ in row] for row in rows])
    assert (np.diff(lengths, axis=1) >= 0).all()
    assert (lengths[:, 0] < lengths[:, -1]).sum() > 5


def test_control_ranking_the_n_best_anew_is_not_a_search():
    """What a search with the other penalty finds may not be among the n best of the first."""
    tables = [Table(seed, 4) for seed in range(20)]
    first, last = ALPHAS[0], ALPHAS[-1]
    ranked_anew = []
    for n_best in decode(BeamSearch(4, first, 4), tables, [8] * 20):
        of_length = [(score / length_penalty(len(ids), last), ids) for ids, score in n_best]
        ranked_anew.append(max(of_length)[1])
    found = [row[-1][0] for row in swept(tables, [8] * 20, 4)]
    assert sum(one != other for one, other in zip(found, ranked_anew, strict=True)) > 2


class Attending(TableStepper):
    """A `TableStepper` that attends to two source positions, the first of them most."""

    def __call__(self, ids, position, state, source):
        logits, state, _ = super().__call__(ids, position, state, source)
        newest = np.asarray(ids)[..., None]
        weights = np.where(newest % 2 == 0, [0.9, 0.1], [0.2, 0.8])
        return logits, state, tf.constant(weights, tf.float32)

    def is_token(self, source):
        return tf.ones([len(source), 2], bool)


def test_a_coverage_penalty_counts_for_each():
    tables = [Table(seed, 4) for seed in range(4)]
    source = np.arange(4, dtype=np.int32)
    limits = np.full(4, 6, np.int32)
    alphas = tf.constant(ALPHAS[1:3], tf.float32)

    def found(options):
        return options.sweep(tf.constant([3]), alphas)(Attending(tables), source, limits)

    options = DecodingOptions(coverage_penalty=0.8)
    ids, scores = found(options)
    _, without = found(DecodingOptions())
    one = options.beam(beam_size=3, length_penalty=ALPHAS[2])
    expected, best = one(Attending(tables), source, limits)
    width = expected.shape[2]
    np.testing.assert_array_equal(ids[:, 1, :width], expected[:, 0])
    assert (ids[:, 1, width:].numpy() == PAD).all()
    np.testing.assert_allclose(scores[:, 1], best[:, 0], rtol=1e-5)
    # Who attends enough to both positions is not penalized.
    assert (scores <= without).numpy().all()
    assert (scores < without - 0.1).numpy().sum() > 3
