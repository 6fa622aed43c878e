"""The loop knows of a state only what the stepper says: which axis of each tensor grows, if any."""

import numpy as np
import pytest
import tensorflow as tf
from oracles import enumeration
from oracles.enumeration import EOS

from keras_transformer.decoding import BeamSearch, GreedySearch, Sampling, loop

V, LIMIT = 8, 7
SCORES = np.random.default_rng(0).normal(0, 2, (3, V, V)).astype("float32")


class Counting:
    """Logits of a sentence's matrix times how often each token has come, and the newest once more.

    The counts have a fixed size. The tokens themselves grow along axis 1, and along axis 2 in a
    copy; both are compared with the counts at every step.
    """

    def __init__(self, growing=(-1, 1, 2)):
        self.growing = growing

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
    """The same, from a prefix."""

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
    return tf.function(lambda source, limits: search(stepper, source, limits), signature)


@pytest.mark.parametrize(("search", "width"), [(GreedySearch(), 1), (BeamSearch(3, 0.6, 3), 3)])
def test_a_state_of_any_kind_follows_its_hypothesis(search, width):
    limits = [LIMIT, 3, 5]
    ids, scores = in_graph(search, Counting())(tf.range(3), tf.constant(limits))
    for sentence, limit in enumerate(limits):
        expected = enumeration.beam_search(
            log_probabilities_of(sentence), limit, width, 0.6 if width > 1 else 0.0, width
        )
        found = [
            tuple(row[: row.tolist().index(EOS) + 1].tolist()) for row in ids[sentence].numpy()
        ]
        assert found == [ids for ids, _ in expected]
        np.testing.assert_allclose(scores[sentence], [score for _, score in expected], rtol=1e-4)


def test_samples_carry_their_state_too():
    ids, _ = in_graph(Sampling(4, num_hypotheses=4), Counting())(tf.range(3), tf.fill([3], LIMIT))
    assert len({tuple(row) for row in ids.numpy().reshape(12, -1).tolist()}) > 6


@pytest.mark.parametrize("growing", [(-1, -1, 2), (-1, 1, 1)])
def test_control_a_growing_axis_that_is_not_named_is_found_when_the_graph_is_made(growing):
    with pytest.raises(ValueError, match="shape"):
        in_graph(GreedySearch(), Counting(growing))(tf.range(3), tf.fill([3], LIMIT))


def test_rows_are_taken_in_any_order_and_not_moved_where_all_go_on():
    state = {"a": tf.constant([[1.0], [2.0], [3.0]]), "b": (tf.constant([4, 5, 6]),)}
    taken = loop.take(state, tf.constant([2, 0, 0, 1]))
    assert taken["a"].numpy().tolist() == [[3], [1], [1], [2]]
    assert taken["b"][0].numpy().tolist() == [6, 4, 4, 5]
    for rows in ([0, 2], [0, 1, 2], [], [1]):
        some = loop.take_some(state, tf.constant(rows, tf.int32))
        assert some["b"][0].numpy().tolist() == [[4, 5, 6][row] for row in rows]
        assert some["a"].shape == (len(rows), 1)
    assert loop.take_some((), tf.constant([0])) == ()


def test_shapes_are_known_where_nothing_changes_them():
    state = {"a": tf.zeros([3, 2, 0, 5]), "b": [tf.zeros([3, 4])]}
    shapes = loop.shape_invariants(state, {"a": 2, "b": [-1]})
    assert shapes["a"].as_list() == [None, 2, None, 5]
    assert shapes["b"][0].as_list() == [None, 4]
    assert loop.fixed(state) == {"a": -1, "b": [-1]}
