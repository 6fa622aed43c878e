"""Greedy search against a loop over the likeliest next token."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import (
    EOS,
    PAD,
    Table,
    assert_lists_equal,
    decode,
)

from keras_transformer.decoding import BeamSearch, GreedySearch, Sampling, loop
from keras_transformer.decoding.other_beams import (
    ShrinkingBeamSearch,
    StayingBeamSearch,
    UntilFullBeamSearch,
    UntilWorseBeamSearch,
)
from keras_transformer.decoding.penalty_sweep import PenaltySweep

SENTENCES = st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 12)), min_size=4, max_size=9)


@settings(max_examples=8)
@given(sentences=SENTENCES, words=st.integers(3, 5), levels=st.sampled_from([None, 1, 2]))
def test_each_sentence_of_a_batch_gets_its_likeliest_tokens_and_log_p(sentences, words, levels):
    tables = [Table(seed, words, levels) for seed, _ in sentences]
    limits = [limit for _, limit in sentences]
    results = decode(GreedySearch(), tables, limits)
    for hypotheses, table, limit in zip(results, tables, limits, strict=True):
        assert_lists_equal(hypotheses, enumeration.likeliest(table, limit))


@pytest.mark.parametrize(("logit", "most"), [(-np.inf, 1), (0.0, 5)])
def test_the_search_ends_where_no_token_is_allowed(logit, most):
    """A control: where EOS is the least likely it goes on to the limit."""
    steps = []

    def logits(ids, position, source):
        steps.append(position)
        row = tf.fill([*ids.shape, 6], logit)
        return tf.tensor_scatter_nd_add(row, [[0, 0, EOS]], [-1.0])

    ids, _ = GreedySearch()(enumeration.Stateless(logits), (), tf.constant([5]))
    assert len(steps) == most
    assert (ids.numpy() == PAD).all() == (most == 1)


NONE = tf.zeros([0], tf.int32)


@pytest.mark.parametrize(
    ("search", "count"),
    [
        (GreedySearch(), 1),
        (BeamSearch(4, 0.6, 2), 2),
        (BeamSearch(NONE, tf.zeros([0]), NONE), 1),
        (Sampling(4, num_hypotheses=2), 2),
    ],
    ids=["greedy", "beam", "beams of their own", "sampling"],
)
def test_no_sentences_give_no_translations(search, count):
    seeds = {"seeds": tf.zeros([0], tf.int64)} if isinstance(search, Sampling) else {}
    ids, scores = search(enumeration.TableStepper([]), tf.range(0), NONE, **seeds)
    assert ids.shape[:2] == scores.shape == (0, count)


# The loop knows of a state only what the stepper says: which axis of each tensor grows, if any.
V, LIMIT = 8, 7
SCORES = np.random.default_rng(0).normal(0, 2, (3, V, V)).astype("float32")


class Counting:
    """Logits: the counts of the tokens so far, the newest counted twice, times a sentence's matrix.

    The counts have a fixed size. The tokens themselves grow along axis 1, and along axis 2 in a
    copy; every step compares both with the counts.
    """

    growing = (-1, 1, 2)

    def start(self, rows):
        return (
            tf.zeros([rows, V]),
            tf.zeros([rows, 0], tf.int32),
            tf.zeros([rows, 2, 0], tf.int32),
        )

    def __call__(self, ids, position, state, source):
        counts, tokens, copies = state
        newest = tf.reshape(ids, [-1, 1])
        counts += tf.one_hot(newest[:, 0], V)
        tokens = tf.concat([tokens, newest], axis=1)
        copies = tf.concat([copies, tf.repeat(newest[:, None], 2, axis=1)], axis=2)
        together = tf.reduce_sum(tf.one_hot(copies[:, 1], V), axis=1)
        with tf.control_dependencies(
            [
                tf.debugging.assert_equal(counts, together),
                tf.debugging.assert_equal(tokens, copies[:, 0]),
            ]
        ):
            features = counts + tf.one_hot(newest[:, 0], V)
        matrices = tf.gather(tf.constant(SCORES), source)
        features = tf.reshape(features, [tf.shape(ids)[0], -1, V])
        return tf.matmul(features, matrices), (counts, tokens, copies), None


def log_probabilities_of(sentence):
    """Return the model of `Counting` as the oracle wants it: a function of prefixes."""

    def log_probabilities(prefixes):
        rows = []
        for prefix in prefixes:
            prefix = [enumeration.BOS, *prefix]
            counts = np.bincount(prefix, minlength=V) + np.eye(V)[prefix[-1]]
            logits = counts @ SCORES[sentence].astype("float64")
            rows.append(logits - np.log(np.exp(logits).sum()))
        return np.array(rows)

    return log_probabilities


def in_graph(search, stepper):
    signature = [tf.TensorSpec([None], tf.int32)] * 2
    return tf.function(
        lambda source, limits: search(stepper, source, limits), signature, autograph=False
    )


@pytest.mark.parametrize(("search", "width"), [(GreedySearch(), 1), (BeamSearch(3, 0.6, 3), 3)])
def test_a_state_of_any_kind_follows_its_hypothesis(search, width):
    limits = [LIMIT, 3, 5]
    ids, scores = in_graph(search, Counting())(tf.range(3), tf.constant(limits))
    for sentence, limit in enumerate(limits):
        expected = enumeration.beam_search(
            log_probabilities_of(sentence), limit, width, 0.6 if width > 1 else 0.0, width
        )
        rows = ids[sentence].numpy().tolist()
        sequences = [tuple(row[: row.index(EOS) + 1]) for row in rows]
        assert sequences == [ids for ids, _ in expected]
        np.testing.assert_allclose(scores[sentence], [score for _, score in expected], rtol=1e-4)


def test_samples_carry_their_state_too():
    ids, _ = in_graph(Sampling(4, num_hypotheses=4), Counting())(tf.range(3), tf.fill([3], LIMIT))
    assert len({tuple(row) for row in ids.numpy().reshape(12, -1).tolist()}) > 6


def test_rows_of_a_state_are_taken_in_any_order():
    state = {"a": tf.constant([[1.0], [2.0], [3.0]]), "b": (tf.constant([4, 5, 6]),)}
    reordered = loop.take(state, tf.constant([2, 0, 0, 1]))
    assert reordered["a"].numpy().tolist() == [[3], [1], [1], [2]]
    assert reordered["b"][0].numpy().tolist() == [6, 4, 4, 5]
    for rows in ([0, 2], [0, 1, 2], [], [1]):
        selected = loop.take_some(state, tf.constant(rows, tf.int32))
        assert selected["b"][0].numpy().tolist() == [[4, 5, 6][row] for row in rows]
        assert selected["a"].shape == (len(rows), 1)
    assert loop.take_some((), tf.constant([0])) == ()


def test_shapes_are_known_where_nothing_changes_them():
    state = {"a": tf.zeros([3, 2, 0, 5]), "b": [tf.zeros([3, 4])]}
    shapes = loop.shape_invariants(state, {"a": 2, "b": [-1]})
    assert shapes["a"].as_list() == [None, 2, None, 5]
    assert shapes["b"][0].as_list() == [None, 4]
    assert loop.fixed(state) == {"a": -1, "b": [-1]}


# One search for several length penalties against a search for each, and against the oracle.
ALPHAS = [0.0, 0.6, 1.0, 4.0]


def swept(tables, limits, beam_size, alphas=ALPHAS, **more):
    """Return (ids, score) of each sentence by each penalty."""
    search = PenaltySweep(tf.constant([beam_size]), tf.constant(alphas, tf.float32))
    return decode(search, tables, limits, **more)


def searched_apart(tables, limits, beam_size, alphas=ALPHAS, **more):
    """Do the same by a search for each penalty."""
    columns = [decode(BeamSearch(beam_size, alpha), tables, limits, **more) for alpha in alphas]
    return [[hypotheses[0] for hypotheses in row] for row in zip(*columns, strict=True)]


def assert_equal(actual, expected):
    for row, expected_row in zip(actual, expected, strict=True):
        assert_lists_equal(row, expected_row)


@settings(max_examples=3)
@given(
    sentences=st.lists(st.tuples(st.integers(0, 2**32), st.integers(1, 6)), min_size=1, max_size=4),
    beam_size=st.integers(1, 5),
    levels=st.sampled_from([None, 1, 2, 3]),
)
def test_each_penalty_gets_what_a_search_of_its_own_gives(sentences, beam_size, levels):
    tables = [Table(seed, 4, levels) for seed, _ in sentences]
    limits = [limit for _, limit in sentences]
    case = (tables, limits, beam_size, ALPHAS[1:3])
    assert_equal(swept(*case), searched_apart(*case))


def test_a_sweep_keeps_prefixes_and_minima():
    tables = [Table(seed, 4) for seed in range(4)]
    alphas = ALPHAS[1:3]
    more = {"alphas": alphas, "minima": [4, 1, 2, 5], "prefixes": [(5,), (), (6, 5), ()]}
    assert_equal(swept(tables, [7] * 4, 3, **more), searched_apart(tables, [7] * 4, 3, **more))


# Beam searches of other programs against their rules, one sentence at a time.
def shrinking_search(log_probabilities, limit, beam_size, alpha):
    """Search one sentence by Marian's rules: all finished hypotheses, best first."""
    alive = [((), 0.0)]
    finished = []
    for length in range(1, limit + 1):
        rows = log_probabilities([ids for ids, _ in alive]).tolist()
        extensions = enumeration._extensions(alive, rows, limit, enumeration.FREE)
        best = sorted(extensions, key=enumeration._descending)[:beam_size]
        ended = [(ids, score / length**alpha) for ids, score in best if ids[-1] == EOS]
        finished += ended
        beam_size -= len(ended)
        alive = [(ids, score) for ids, score in best if ids[-1] != EOS]
        if not alive or not beam_size:
            break
    return sorted(finished, key=enumeration._descending)


def staying_search(log_probabilities, limit, beam_size, alpha):
    """Search one sentence by OpenNMT-tf's rules, in the order of its beam. By its slip, a
    hypothesis which ended takes over the sum of the place that it moves to. A beam of 1 pays for
    EOS at the limit too.
    """
    beam = [((), 0.0)]
    for length in range(1, limit + 1):
        if length == limit and beam_size > 1:
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
        best = sorted(extensions, key=lambda extension: -extension[0])[:beam_size]
        before = [total for _, total in beam] + [-float("inf")] * beam_size
        beam = [
            (ids, before[place] if len(ids) < length else total)
            for place, (_, ids, total) in enumerate(best)
        ]
        if all(ids[-1] == EOS or total == -float("inf") for ids, total in beam):
            break
    return [
        (ids, total / enumeration.length_penalty(len(ids), alpha))
        for ids, total in beam
        if total > -float("inf")
    ]


def until_search(log_probabilities, limit, beam_size, alpha, is_full_enough):
    """Search one sentence by Hugging Face's rules: the hypotheses that it keeps, best first."""
    alive, finished = [((), 0.0)], []
    for length in range(1, limit + 1):
        rows = log_probabilities([ids for ids, _ in alive]).tolist()
        extensions = enumeration._extensions(alive, rows, limit, enumeration.FREE)
        if length == limit and beam_size > 1:
            extensions = [((*ids, EOS), total) for ids, total in alive]
        best = sorted(extensions, key=enumeration._descending)[: 2 * beam_size]
        ended = [(ids, total / length**alpha) for ids, total in best[:beam_size] if ids[-1] == EOS]
        finished = sorted(finished + ended, key=enumeration._descending)[:beam_size]
        alive = [(ids, total) for ids, total in best if ids[-1] != EOS][:beam_size]
        if not alive:
            break
        worse = finished and finished[-1][1] >= alive[0][1] / length**alpha
        if len(finished) == beam_size and (is_full_enough or beam_size == 1 or worse):
            break
    return finished


FORM = {"length_penalty_form": "length"}
# A beam, its rules for one sentence, and the form of its length penalty.
RULES = {
    "shrinking": (ShrinkingBeamSearch, shrinking_search, FORM),
    "staying": (StayingBeamSearch, staying_search, {}),
    "until full": (UntilFullBeamSearch, functools.partial(until_search, is_full_enough=True), FORM),
    "until worse": (
        UntilWorseBeamSearch,
        functools.partial(until_search, is_full_enough=False),
        FORM,
    ),
}


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=6)
@example(sentences=[(0, 3), (1, 1)], words=3, beam_size=1, alpha=0.0)
@given(
    sentences=SENTENCES,
    words=st.integers(3, 5),
    beam_size=st.integers(1, 5),
    alpha=st.sampled_from(ALPHAS[:3]),
)
def test_a_beam_follows_its_rules(name, sentences, words, beam_size, alpha):
    kind, rules, form = RULES[name]
    tables = [Table(seed, words) for seed, _ in sentences]
    limits = [limit for _, limit in sentences]
    search = kind(beam_size, alpha, beam_size, **form)
    results = decode(search, tables, limits)
    for hypotheses, table, limit in zip(results, tables, limits, strict=True):
        assert_lists_equal(hypotheses, rules(table.log_probabilities, limit, beam_size, alpha))
