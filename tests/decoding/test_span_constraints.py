"""Searches that keep the spans of their source, on random models; a stack checks the spans."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from oracles.enumeration import BOS, EOS, PAD, random_model

from keras_transformer.decoding import GreedySearch, Sampling
from keras_transformer.decoding.constraints import Constraints, SpanConstraints
from keras_transformer.decoding.other_beams import BEAMS

SIZE = 12
MARKS = np.array([5, 6, 7, 9], np.int32)
SENTENCES = 60
random = np.random.default_rng(3)
COUNTS = random.integers(0, 3, (SENTENCES, len(MARKS)))
# In every third sentence the second mark closes the first, and the fourth the third.
PAIRED = np.arange(SENTENCES) % 3 == 0
COUNTS[PAIRED] = 1
CLOSES = np.where(PAIRED[:, None], [-1, 0, -1, 2], -1)
LIMITS = random.integers(1, 15, SENTENCES)
SEARCHES = {
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
    numbers = tf.constant(np.arange(SENTENCES, dtype=np.int32)[rows])
    ids, scores = search(random_model(SIZE), numbers, tf.constant(LIMITS[rows]), **more)
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


@pytest.mark.parametrize("name", SEARCHES)
def test_every_hypothesis_keeps_the_spans(name):
    ids, scores = outputs(SEARCHES[name](rules()))
    assert (scores[:, 0] > -np.inf).all()
    assert all(kept_by_each(ids, scores))


def test_a_limit_grows_only_for_marks():
    ids, _ = outputs(GreedySearch(rules()))
    lengths = np.count_nonzero(ids[:, 0] != PAD, axis=1)
    room = np.maximum(LIMITS, np.where(COUNTS.sum(1) > 0, COUNTS.sum(1) + 1, 0))
    assert (lengths <= room).all()
    assert (lengths == room)[COUNTS.sum(1) > LIMITS].all()


def test_without_spans_the_search_only_bars_marks():
    rows = np.flatnonzero(np.arange(SENTENCES) % 3 == 1)
    none = tf.zeros([len(rows), len(MARKS)], tf.int32)
    barred_marks = Constraints(barred=tuple(MARKS.tolist()))
    ruled = SpanConstraints(marks=MARKS, count=none, opened_by=none - 1)
    for search in (SEARCHES["greedy"], SEARCHES["leaving"]):
        pairs = zip(outputs(search(ruled), rows), outputs(search(barred_marks), rows), strict=True)
        for ours, theirs in pairs:
            np.testing.assert_array_equal(ours, theirs)


def test_a_sentence_does_not_depend_on_its_batch():
    whole, _ = outputs(BEAMS["leaving"](4, constraints=rules()))
    for row in range(0, SENTENCES, 16):
        alone, _ = outputs(BEAMS["leaving"](4, constraints=rules([row])), [row])
        np.testing.assert_array_equal(alone[0, 0], whole[row, 0, : alone.shape[2]])


def test_the_score_stays_that_of_the_model():
    ids, scores = outputs(GreedySearch(rules()))
    model = random_model(SIZE)
    for row in range(0, SENTENCES, 5):
        history = [BOS, *(int(id_) for id_ in ids[row, 0] if id_ != PAD)]
        total = 0.0
        for position, (before, token) in enumerate(itertools.pairwise(history)):
            source = tf.constant([row])
            logits, *_ = model(tf.constant([before]), position, model.start(1), source)
            total += float(tf.nn.log_softmax(tf.reshape(logits, [-1]))[token])
        assert scores[row, 0] == pytest.approx(total, abs=1e-4)


def test_prefixes_and_minima_hold_with_the_rules():
    prefixes = np.full((SENTENCES, 2), 10)
    ids, scores = outputs(
        BEAMS["leaving"](4, constraints=rules()), minima=tf.fill([SENTENCES], 4), prefixes=prefixes
    )
    assert (ids[:, 0, :2] == 10).all()
    assert all(kept_by_each(ids, scores))
    assert (np.count_nonzero(ids[:, 0] != PAD, axis=1) >= np.minimum(LIMITS, 4)).all()
