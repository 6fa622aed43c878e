"""Beam searches of Marian and OpenNMT-tf against their rules, one sentence at a time."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import EOS, Table, assert_lists_equal, decode

from keras_transformer.decoding import BeamSearch
from keras_transformer.decoding.other_beams import ShrinkingBeamSearch, StayingBeamSearch

SENTENCES = st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 6)), min_size=1, max_size=4)
WORDS = st.integers(3, 5)
ALPHAS = st.sampled_from([0.0, 0.6, 1.0])


def shrinking_search(log_probabilities, limit, beam_size, alpha):
    """Marian's rules for one sentence, all that was finished, best first."""
    alive = [((), 0.0)]
    finished = []
    for length in range(1, limit + 1):
        rows = log_probabilities([ids for ids, _ in alive]).tolist()
        extensions = enumeration._extensions(alive, rows, limit, enumeration.FREE)
        best = sorted(extensions, key=lambda one: -one[1])[:beam_size]
        ended = [(ids, score / length**alpha) for ids, score in best if ids[-1] == EOS]
        finished += ended
        beam_size -= len(ended)
        alive = [one for one in best if one[0][-1] != EOS]
        if not alive or not beam_size:
            break
    return sorted(finished, key=lambda one: -one[1])


@settings(max_examples=10, deadline=None)
@given(
    sentences=SENTENCES,
    words=WORDS,
    beam_size=st.integers(1, 5),
    alpha=ALPHAS,
)
def test_a_shrinking_beam_follows_marians_rules(sentences, words, beam_size, alpha):
    tables = [Table(seed, words) for seed, _ in sentences]
    limits = [limit for _, limit in sentences]
    search = ShrinkingBeamSearch(beam_size, alpha, beam_size, length_penalty_form="length")
    for found, table, limit in zip(decode(search, tables, limits), tables, limits, strict=True):
        expected = shrinking_search(table.log_probabilities, limit, beam_size, alpha)
        assert_lists_equal(found, expected)


def test_a_beam_that_keeps_its_width_finds_others():
    """The control: the two searches are not one."""
    tables = [Table(seed, 4) for seed in range(30)]
    limits = [6] * len(tables)
    shrinking = decode(ShrinkingBeamSearch(2, 1.0, length_penalty_form="length"), tables, limits)
    assert shrinking != decode(BeamSearch(2, 1.0, length_penalty_form="length"), tables, limits)


def staying_search(log_probabilities, limit, beam_size, alpha, keeps_sums=False):
    """OpenNMT-tf's rules for one sentence, in the order of its beam; `keeps_sums` without its slip
    that a hypothesis which ended takes over the sum of the place that it moves to.
    """
    beam = [((), 0.0)]
    for length in range(1, limit + 1):
        if length == limit:
            beam = [(ids if ids[-1:] == (EOS,) else (*ids, EOS), total) for ids, total in beam]
            break
        extensions = []
        for ids, total in beam:
            if ids[-1:] == (EOS,):
                lp = enumeration.length_penalty(len(ids) + 1, alpha)
                extensions.append((total / lp, ids, total))
                continue
            row = log_probabilities([ids]).tolist()
            for longer, score in enumeration._extensions(
                [(ids, total)], row, limit, enumeration.FREE
            ):
                lp = enumeration.length_penalty(length, alpha)
                extensions.append((score / lp, longer, score))
        best = sorted(extensions, key=lambda one: -one[0])[:beam_size]
        before = [total for _, total in beam] + [-float("inf")] * beam_size
        beam = [
            (ids, before[place] if len(ids) < length and not keeps_sums else total)
            for place, (_, ids, total) in enumerate(best)
        ]
        if all(ids[-1] == EOS or total == -float("inf") for ids, total in beam):
            break
    return [
        (ids, total / enumeration.length_penalty(len(ids), alpha))
        for ids, total in beam
        if total > -float("inf")
    ]


@settings(max_examples=10, deadline=None)
@given(sentences=SENTENCES, words=WORDS, beam_size=st.integers(1, 4), alpha=ALPHAS)
def test_a_staying_beam_follows_opennmts_rules(sentences, words, beam_size, alpha):
    tables = [Table(seed, words) for seed, _ in sentences]
    limits = [limit for _, limit in sentences]
    search = StayingBeamSearch(beam_size, alpha, beam_size)
    for found, table, limit in zip(decode(search, tables, limits), tables, limits, strict=True):
        expected = staying_search(table.log_probabilities, limit, beam_size, alpha)
        assert_lists_equal(found, expected)


def test_a_staying_beam_has_opennmts_slip():
    """The control: without it, sums are others."""
    tables = [Table(seed, 4) for seed in range(30)]
    without = [staying_search(one.log_probabilities, 6, 3, 0.6, keeps_sums=True) for one in tables]
    found = decode(StayingBeamSearch(3, 0.6, 3), tables, [6] * len(tables))
    with pytest.raises(AssertionError):
        assert_lists_equal([*itertools.chain(*found)], [*itertools.chain(*without)])
