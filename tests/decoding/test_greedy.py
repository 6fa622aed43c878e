"""Greedy search against a loop over the likeliest next token."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import BOS, EOS, PAD, Table, decode

from keras_transformer.decoding import GreedySearch

SENTENCES = st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 12)), min_size=1, max_size=6)


def likeliest(table, limit):
    """The likeliest token that may come, until EOS, which must come at the limit; and log P."""
    ids, total = (), 0.0
    while EOS not in ids:
        row = table.log_probabilities([ids])[0]
        total += row[EOS] if len(ids) + 1 == limit else max(np.delete(row, [PAD, BOS]))
        row[[PAD, BOS]] = -np.inf
        ids += (EOS if len(ids) + 1 == limit else int(np.argmax(row)),)
    return ids, total


@settings(max_examples=15, deadline=None)
@given(sentences=SENTENCES, words=st.integers(3, 5), levels=st.sampled_from([None, 1, 2]))
def test_each_sentence_of_a_batch_gets_its_likeliest_tokens_and_their_log_p(
    sentences, words, levels
):
    tables, limits = (
        [Table(seed, words, levels) for seed, _ in sentences],
        [limit for _, limit in sentences],
    )
    for [(ids, score)], table, limit in zip(
        decode(GreedySearch(), tables, limits), tables, limits, strict=True
    ):
        expected_ids, expected_score = likeliest(table, limit)
        assert ids == expected_ids
        assert score == pytest.approx(expected_score, rel=1e-5, abs=1e-5)


def test_company_and_order_change_nothing():
    tables = [Table(seed, 4, levels=(None, 1, 2)[seed % 3]) for seed in range(12)]
    limits = [1 + seed for seed in range(12)]
    alone = [
        decode(GreedySearch(), [table], [limit])[0]
        for table, limit in zip(tables, limits, strict=True)
    ]
    assert decode(GreedySearch(), tables, limits) == alone
    assert decode(GreedySearch(), tables[::-1], limits[::-1]) == alone[::-1]


def test_at_limit_one_there_is_only_eos():
    table = Table(seed=5, words=3)
    assert decode(GreedySearch(), [table], [1]) == [
        [((EOS,), pytest.approx(table.score((EOS,), 0.0), abs=1e-5))]
    ]


@pytest.mark.parametrize(("logit", "most"), [(-np.inf, 1), (0.0, 5)])
def test_it_ends_where_nothing_may_come(logit, most):
    """A control: where all but EOS are likely it goes on to the limit."""
    steps = []

    def logits(ids, position, source):
        steps.append(position)
        row = tf.fill([*ids.shape, 6], logit)
        return tf.tensor_scatter_nd_add(row, [[0, 0, EOS]], [-1.0])

    ids, _ = GreedySearch()(enumeration.Stateless(logits), (), tf.constant([5]))
    assert len(steps) == most
    assert (ids.numpy() == PAD).all() == (most == 1)


def test_no_sentences_give_no_translations():
    ids, scores = GreedySearch()(enumeration.TableStepper([]), tf.range(0), tf.zeros([0], tf.int32))
    assert ids.shape[:2] == scores.shape == (0, 1)


def test_control_a_table_that_forgets_its_prefix_gives_other_ids():
    class Forgetful(Table):
        def logits(self, prefixes):
            return super().logits(np.zeros((len(prefixes), 0)))

    seeds, limits = range(10), [12] * 10
    assert decode(GreedySearch(), [Table(seed, 5) for seed in seeds], limits) != decode(
        GreedySearch(), [Forgetful(seed, 5) for seed in seeds], limits
    )
