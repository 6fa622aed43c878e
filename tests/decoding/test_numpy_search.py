"""The search in NumPy finds what the searches of TensorFlow find, with any options."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import enumeration
from oracles.enumeration import BOS, EOS, PAD, TableStepper, assert_lists_equal, decode

from keras_transformer.decoding import DecodingOptions
from keras_transformer.decoding.constraints import SpanConstraints, under
from keras_transformer.decoding.numpy_blocks import NumpyBlocks
from keras_transformer.decoding.numpy_rules import Spans
from keras_transformer.decoding.numpy_search import NumpySearch

WORDS = 5
SENTENCES = st.lists(
    st.tuples(
        st.integers(0, 2**32),
        st.integers(1, 9),
        st.integers(1, 5),
        st.lists(st.integers(4, 3 + WORDS), max_size=3).map(tuple),
    ),
    min_size=6,
    max_size=12,
)
# Seed, limit, minimum, prefix: each sentence exercises one rule, the last all.
VARIED = [(1, 5, 1, ()), (2, 5, 4, ()), (3, 2, 5, ()), (4, 2, 1, (4, 4)), (6, 5, 4, (4, 4, 5))]
OPTIONS = [
    {},
    {"beam_size": 1},
    {"beam_size": 6, "num_hypotheses": 6, "length_penalty": 1.0},
    {"beam_size": 3, "num_hypotheses": 2, "length_penalty_form": "length"},
    {"beam_size": 4, "num_hypotheses": 4, "beam_form": "shrinking", "length_penalty": 0.0},
    {"beam_size": 4, "beam_form": "shrinking", "length_penalty": 4.0},
    {"beam_size": 3, "num_hypotheses": 3, "beam_form": "until_full", "length_penalty": 1.0},
    {"beam_size": 3, "beam_form": "until_worse", "length_penalty_form": "length"},
    {"beam_size": 3, "num_hypotheses": 3, "beam_form": "staying", "length_penalty": 0.7},
    {"beam_size": 2, "no_repeat_ngram_size": 1},
    {"beam_size": 1, "no_repeat_ngram_size": 2, "barred": (1, 5)},
    {"beam_size": 3, "repetition_penalty": 1.5},
    {"samples": 1},
    {"samples": 4, "num_hypotheses": 3, "temperature": 0.7, "seed": 5},
    {"samples": 2, "top_k": 3, "top_p": 0.8, "repetition_penalty": 1.2},
    {"blockwise": True},
    {"blockwise": True, "no_repeat_ngram_size": 2, "barred": (1, 5)},
    {"blockwise": True, "repetition_penalty": 1.5},
]


class Centred(enumeration.Table):
    """Logits of both signs."""

    def logits(self, prefixes):
        return super().logits(prefixes) - np.float32(8)


class TableModel:
    """The tables of `TableStepper` as the model of a search in NumPy. For blocks it proposes the
    likeliest tokens without rules, now and then token 4 instead.
    """

    block_size = 3

    def __init__(self, tables):
        self.blocks = 0
        self._stepper = TableStepper(tables)
        self.start = self._stepper.start

    def step(self, ids, position, rows, count, bias, factor, state, source):
        state = {name: array[rows] for name, array in state.items()}
        logits, state, _ = self._stepper(ids, position, state, source[0])
        logits = logits.reshape(-1, logits.shape[-1])
        logits = np.where(logits > 0, logits / factor, logits * factor)
        largest = logits.max(axis=1, keepdims=True)
        normalizer = largest[:, 0] + np.log(np.exp(logits - largest).sum(axis=1))
        biased = logits - normalizer[:, None] + bias
        biased[:, [PAD, BOS]] = -np.inf
        tokens = np.argsort(-biased, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(biased, tokens, 1), tokens.astype(np.int32), state

    def block(self, ids, position, bias, factor, state, source):
        [block] = ids
        rules = (np.broadcast_to(rule, (len(block), rule.shape[1])) for rule in (bias, factor))
        logs, newest, states = [], [], []
        for place, (token, *of_step) in enumerate(zip(block, *rules, strict=True)):
            log, best, state = self._best_token(token, position + place, of_step, state, source)
            logs.append(log)
            newest.append(best)
            states.append(state)
        pairs = zip(block[1:], newest[:-1], strict=True)
        agrees = [proposal == best != EOS for proposal, best in pairs]
        count = 1 + [*agrees, False].index(False)
        state = states[count - 1]
        proposed = [newest[count - 1]]
        further = state
        for place in range(1, len(block)):
            step = (position + count + place - 1, [np.zeros(1), np.ones(1)], further, source)
            _, token, further = self._best_token(proposed[-1], *step)
            proposed.append(token if (position + place) % 4 else 4)
        self.blocks += 1
        columns = (np.array(column)[:, None] for column in (logs, newest))
        return *columns, np.array(count), np.array(proposed[1:]), state

    def _best_token(self, token, position, of_step, state, source):
        bias, factor = (rule[None] for rule in of_step)
        step = (np.array([[token]]), np.array(position), [0], 1, bias, factor, state, source)
        log, newest, state = self.step(*step)
        return log.item(), newest.item(), state


def of_numpy(sentences, options, spans=None, free_prefix=0):
    """Return the hypotheses of each sentence, best first."""
    seeds, limits, minima, prefixes = zip(*sentences, strict=True)
    tables = [Centred(seed, WORDS) for seed in seeds]
    kind = NumpyBlocks if options.blockwise else NumpySearch
    search = kind(options, 4 + WORDS, free_prefix=free_prefix)
    # The last array of a source is the first proposal, behind BOS.
    source = [np.arange(len(tables), dtype=np.int32), np.full((len(tables), 2), 4)]
    return search(TableModel(tables), source, limits, minima, prefixes, seeds, spans)


def assert_alike(actual, expected, prefix=()):
    """The ids, behind the free prefix, and the scores are the same."""
    for hypotheses, reference in zip(actual, expected, strict=True):
        assert_lists_equal([((*prefix, *ids), score) for score, ids, _ in hypotheses], reference)


@pytest.mark.parametrize("given_options", OPTIONS, ids=str)
@settings(max_examples=2)
@example(sentences=VARIED)
@given(sentences=SENTENCES)
def test_it_finds_what_tensorflow_s_searches_find(given_options, sentences):
    options = DecodingOptions(**given_options)
    assert_alike(of_numpy(sentences, options), of_tensorflow(options, sentences, None))


@pytest.mark.parametrize("given_options", [OPTIONS[n] for n in (0, 1, 4, 6, 7, 12, 14)], ids=str)
def test_tokens_of_a_free_prefix_cost_nothing_and_are_left_out(given_options):
    options = DecodingOptions(**given_options)
    # The first token of each prefix is free, as the label of a language is.
    sentences = [(seed, limit, least, (5, *rest)) for seed, limit, least, rest in VARIED]
    results = of_numpy(sentences, options, free_prefix=1)
    assert_alike(results, of_tensorflow(options, sentences, None, free_prefix=1), prefix=(5,))
    assert all(len(ids) == len(logs) for _, ids, logs in itertools.chain(*results))


# Three marks. For each sentence: how often each mark comes, and which mark it closes.
MARKS = np.array([4, 6, 8], np.int32)
SPANS = [
    ((1, 1, 0), (-1, 0, -1)),
    ((2, 0, 3), (-1, -1, -1)),
    ((0, 0, 0), (-1, -1, -1)),
    ((1, 1, 1), (-1, -1, 0)),
]


def of_tensorflow(options, sentences, spans, free_prefix=0):
    # Blockwise search is compared with greedy search.
    search = dataclasses.replace(options, blockwise=False).search()
    search = under(search, dataclasses.replace(search.constraints, free_prefix=free_prefix))
    if spans is not None:
        rules = options.constraints(
            SpanConstraints,
            marks=spans.marks,
            count=tf.constant(spans.count, tf.int32),
            opened_by=tf.constant(spans.opened_by, tf.int32),
        )
        search = under(search, rules)
    seeds, limits, minima, prefixes = zip(*sentences, strict=True)
    tables = [Centred(seed, WORDS) for seed in seeds]
    more = {"seeds": np.array(seeds, np.int64)}
    return decode(search, tables, limits, minima, prefixes, **more)


@pytest.mark.parametrize("given_options", [OPTIONS[n] for n in (0, 1, 4, 8, 14)], ids=str)
@settings(max_examples=2)
@example(sentences=VARIED[:4], places=[0, 1, 2, 3])
@example(sentences=VARIED[:2], places=[2, 2])
@given(sentences=SENTENCES, places=st.lists(st.sampled_from(range(4)), min_size=12, max_size=12))
def test_it_keeps_the_spans_that_tensorflow_s_searches_keep(given_options, sentences, places):
    options = DecodingOptions(**given_options)
    rows = [SPANS[place] for place in places[: len(sentences)]]
    spans = Spans(MARKS, *(np.array(column) for column in zip(*rows, strict=True)))
    assert_alike(of_numpy(sentences, options, spans), of_tensorflow(options, sentences, spans))


def test_log_probabilities_are_those_of_each_token():
    [[hypothesis]] = of_numpy([(3, 6, 1, ())], DecodingOptions(beam_size=1))
    table = Centred(3, WORDS)
    expected = [
        table.log_probabilities([hypothesis.ids[:place]])[0, token]
        for place, token in enumerate(hypothesis.ids)
    ]
    np.testing.assert_allclose(hypothesis.log_probabilities, expected, rtol=1e-5, atol=1e-5)
    assert hypothesis.ids[-1] == EOS
    assert hypothesis.score == pytest.approx(sum(hypothesis.log_probabilities))


def test_blocks_take_fewer_steps_than_there_are_tokens():
    tables = [Centred(seed, WORDS) for seed in range(8)]
    model = TableModel(tables)
    search = NumpyBlocks(DecodingOptions(blockwise=True), 4 + WORDS)
    sentences = [np.arange(8), np.full((8, 2), 4)], [9] * 8, [5] * 8, [()] * 8, [0] * 8
    tokens = sum(len(hypothesis.ids) for [hypothesis] in search(model, *sentences))
    assert 8 < model.blocks < tokens


def test_a_beam_extends_only_hypotheses_that_may_still_win(monkeypatch):
    step = TableModel.step
    widths = []

    def counting(self, ids, *arguments):
        widths.append(ids.shape)
        return step(self, ids, *arguments)

    monkeypatch.setattr(TableModel, "step", counting)
    of_numpy([(3, 9, 1, ())], DecodingOptions(beam_size=4))
    # All begin as one hypothesis; those that can no longer beat the best finished one are dropped.
    assert widths == [(1, hypotheses) for hypotheses in (1, 4, 4, 4, 3, 1, 1)]


def test_hypotheses_of_equal_scores_come_in_the_order_of_ids():
    tables = [enumeration.Table(1, WORDS, levels=1)]
    options = DecodingOptions(num_hypotheses=4)
    [hypotheses] = NumpySearch(options, 4 + WORDS)(
        TableModel(tables), [np.zeros(1, int)], [5], [1], [()], [0]
    )
    [expected] = decode(options.search(), tables, [5])
    assert [tuple(hypothesis.ids) for hypothesis in hypotheses] == [ids for ids, _ in expected]


def test_no_sentences_give_nothing():
    assert NumpySearch(DecodingOptions(), 9)(TableModel([]), [np.zeros(0)], [], [], [], []) == []
