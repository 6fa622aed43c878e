"""R-Drop and scheduled sampling against their formulas in NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from small_model import small_model

from keras_transformer.training import fit
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.objective import (
    LIKELIHOOD,
    RDrop,
    ScheduledSampling,
    divergence_of_halves,
)
from keras_transformer.training.optimizer import optimizer

RANDOM = np.random.default_rng(0)
SOURCE, TARGET, LABELS = (tf.constant(RANDOM.integers(4, 20, (3, 5)), tf.int32) for _ in range(3))
WEIGHTS = tf.constant(np.tril(np.ones((3, 5)), 2), tf.float32)
BATCH = ((SOURCE, TARGET), LABELS, WEIGHTS)


def make_model(dropout=0.0, body=small_model):
    keras.utils.set_random_seed(1)
    model = body(dropout=dropout)
    fit.compile_model(model, optimizer(0.01), LabelSmoothedCrossEntropy(0.1))
    for weight in model.weights:
        weight.assign(3 * weight)
    return model


class PassesInTurn:
    """Stands for a model in training: gives fixed logits, row by row of all that it is asked."""

    loss = LabelSmoothedCrossEntropy(0.1)

    def __init__(self, logits):
        self.logits = tf.constant(logits, tf.float32)
        self.seen = []

    def __call__(self, inputs, training):
        self.seen.append([part.numpy() for part in inputs])
        return self.logits


def log_softmax(logits):
    logits = logits.astype(np.float64)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def smoothed(logits, epsilon=0.1):
    log_p = log_softmax(logits)
    at_label = np.take_along_axis(log_p, LABELS.numpy()[..., None], axis=-1)[..., 0]
    return -(1 - epsilon) * at_label - epsilon * log_p.mean(axis=-1)


@pytest.mark.parametrize("alpha", [1.0, 5.0])
def test_r_drop_is_the_formula_of_two_passes(alpha):
    both = np.random.default_rng(1).normal(size=(6, 5, 20))
    first, second = both[:3], both[3:]
    model = PassesInTurn(both)
    total, logits = RDrop(alpha)(model, *BATCH)
    log_p, log_q = log_softmax(first), log_softmax(second)
    divergence = sum(
        (np.exp(one) * (one - other)).sum(axis=-1)
        for one, other in ((log_p, log_q), (log_q, log_p))
    )
    each = (smoothed(first) + smoothed(second)) / 2 + alpha / 4 * divergence
    assert float(total) == pytest.approx(float((each * WEIGHTS.numpy()).sum()), rel=1e-5)
    np.testing.assert_array_equal(logits, first.astype(np.float32))
    [[sources, targets]] = model.seen
    np.testing.assert_array_equal(sources, np.tile(SOURCE, (2, 1)))
    np.testing.assert_array_equal(targets, np.tile(TARGET, (2, 1)))


def test_the_divergence_and_its_gradient_are_those_of_tensorflow():
    rng = np.random.default_rng(2)
    logits = tf.Variable(rng.normal(0, 3, (6, 5, 20)).astype(np.float32))
    weights = tf.constant(rng.normal(size=(3, 5)).astype(np.float32))
    with tf.GradientTape(persistent=True) as tape:
        log_p, log_q = tf.split(tf.nn.log_softmax(logits), 2)
        kl = keras.losses.KLDivergence(reduction=None)
        expected = kl(tf.exp(log_p), tf.exp(log_q)) + kl(tf.exp(log_q), tf.exp(log_p))
        actual = divergence_of_halves(logits)
        sums = [tf.reduce_sum(weights * one) for one in (actual, expected, 2.0 * expected)]
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    of_actual, of_expected, of_other = (tape.gradient(one, logits) for one in sums)
    np.testing.assert_allclose(of_actual, of_expected, rtol=1e-3, atol=1e-3)
    assert np.abs(of_actual - of_other).max() > 0.1


def test_without_dropout_r_drop_is_the_plain_loss_and_with_it_more():
    model = make_model()
    plain, _ = LIKELIHOOD(model, *BATCH)
    agreeing, _ = RDrop(5.0)(model, *BATCH)
    assert float(agreeing) == pytest.approx(float(plain), rel=1e-6)
    model = make_model(dropout=0.5)
    without, _ = RDrop(1e-9)(model, *BATCH)
    model = make_model(dropout=0.5)
    total, _ = RDrop(5.0)(model, *BATCH)
    assert float(total) > float(without) + 0.01


class Guesser(PassesInTurn):
    """Always says token 4 + position."""

    def __init__(self):
        super().__init__(np.tile(40 * np.eye(20)[4:9], (3, 1, 1)))
        self.optimizer = tf.Module()
        self.optimizer.iterations = tf.Variable(0)


def targets_seen(probability, step, steps=10):
    model = Guesser()
    model.optimizer.iterations.assign(step)
    total, _ = ScheduledSampling(probability, steps)(model, *BATCH)
    (_, first), (_, second) = model.seen
    np.testing.assert_array_equal(first, TARGET)
    return second, float(total)


def test_at_the_beginning_the_target_is_the_true_one():
    seen, total = targets_seen(0.9, step=0)
    np.testing.assert_array_equal(seen, TARGET)
    assert total == pytest.approx(
        float((smoothed(Guesser().logits.numpy()) * WEIGHTS.numpy()).sum())
    )


def test_a_guess_takes_the_place_of_the_token_after_its_position():
    """With probability 1, after the whole schedule: but for the first token, and for padding."""
    seen, _ = targets_seen(1.0, step=10)
    expected = TARGET.numpy().copy()
    guesses = np.tile(np.arange(4, 8), (3, 1))
    counts = WEIGHTS.numpy()[:, :-1] > 0
    expected[:, 1:][counts] = guesses[counts]
    np.testing.assert_array_equal(seen, expected)
    assert (expected != TARGET.numpy()).sum() > 5


def share_replaced(step, batches=200):
    """Of tokens 0, by guesses."""
    random = np.random.default_rng(3)
    shares = []
    for _ in range(batches):
        model = Guesser()
        model.optimizer.iterations.assign(step)
        labels = tf.constant(random.integers(0, 20, (3, 5)), tf.int32)
        inputs = (SOURCE, tf.zeros_like(TARGET))
        ScheduledSampling(0.8, 10)(model, inputs, labels, tf.ones_like(WEIGHTS))
        shares.append((model.seen[1][1][:, 1:] != 0).mean())
    return np.mean(shares)


@pytest.mark.parametrize(("step", "share"), [(5, 0.4), (10, 0.8), (99, 0.8)])
def test_the_probability_rises_with_the_steps(step, share):
    assert share_replaced(step) == pytest.approx(share, abs=0.06)


def test_a_step_draws_the_same_again_and_another_step_does_not():
    first, again, other = (targets_seen(0.5, step, steps=1)[0] for step in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("objective", [RDrop(5.0), ScheduledSampling(0.5, 1)], ids=str)
def test_its_gradient_is_that_of_its_total(objective):
    """By differences, in one direction."""
    model = make_model()
    model.optimizer.iterations.assign(3)
    variables = model.trainable_variables
    random = np.random.default_rng(2)
    directions = [tf.constant(random.normal(size=v.shape), tf.float32) for v in variables]
    with tf.GradientTape() as tape:
        total, _ = objective(model, *BATCH)
    along = sum(
        float(tf.reduce_sum(tf.convert_to_tensor(gradient) * direction))
        for gradient, direction in zip(tape.gradient(total, variables), directions, strict=True)
    )
    totals = []
    for sign in (1, -2):
        for variable, direction in zip(variables, directions, strict=True):
            variable.assign_add(sign * 1e-3 * direction)
        totals.append(float(objective(model, *BATCH)[0]))
    assert along == pytest.approx((totals[0] - totals[1]) / 2e-3, rel=0.02)
