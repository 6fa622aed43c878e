"""Section 5.4: label-smoothed cross-entropy and its gradient; float64, Keras and autodiff agree.
And R-Drop and scheduled sampling, which are made of it.
"""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import paper
from small_model import small_model

from keras_transformer.training import fit
from keras_transformer.training.loss import (
    LabelAccuracy,
    LabelCount,
    LabelCrossEntropy,
    LabelSmoothedCrossEntropy,
    label_smoothed_cross_entropy,
)
from keras_transformer.training.objective import (
    LIKELIHOOD,
    RDrop,
    ScheduledSampling,
    divergence_of_halves,
)
from keras_transformer.training.optimizer import optimizer

B, T, V = 3, 4, 7
EPSILONS = pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])


@pytest.fixture
def labels():
    return np.array([[1, 2, 3, 0], [6, 6, 0, 0], [4, 5, 1, 2]])


@pytest.fixture
def logits():
    return 3 * np.random.default_rng(0).normal(size=(B, T, V)).astype("float32")


def real(labels):
    """Weights that leave out padding, id 0."""
    return (labels != 0).astype("float32")


def gradient_of(loss, logits):
    z = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(z)
        value = loss(z)
    return tape.gradient(value, z).numpy()


@EPSILONS
def test_the_loss_of_a_token_is_the_oracle_s_and_that_of_keras(labels, logits, epsilon):
    theirs = keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=epsilon, reduction=None
    )
    for expected in (
        paper.label_smoothed_cross_entropy(labels, logits, epsilon),
        theirs(np.eye(V, dtype="float32")[labels], logits),
    ):
        for actual in (
            label_smoothed_cross_entropy(labels, logits, epsilon),
            LabelSmoothedCrossEntropy(epsilon).call(labels, logits),
        ):
            np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


def test_bfloat16_logits_are_summed_in_float32(labels, logits):
    rounded = keras.ops.cast(logits, "bfloat16")
    actual = label_smoothed_cross_entropy(labels, rounded, 0.1)
    assert keras.backend.standardize_dtype(actual.dtype) == "float32"
    expected = paper.label_smoothed_cross_entropy(
        labels, keras.ops.convert_to_numpy(keras.ops.cast(rounded, "float32")), 0.1
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@EPSILONS
def test_the_gradient_of_the_mean_is_that_of_autodiff_through_the_plain_formula(
    labels, logits, epsilon
):
    def plain(z):
        losses = -tf.reduce_sum(
            paper.smoothed_labels(labels, V, epsilon).astype("float32") * tf.nn.log_softmax(z),
            axis=-1,
        )
        return tf.reduce_mean(losses[labels != 0])

    actual = gradient_of(
        lambda z: LabelSmoothedCrossEntropy(epsilon)(labels, z, real(labels)), logits
    )
    np.testing.assert_allclose(actual, gradient_of(plain, logits), rtol=1e-6, atol=1e-6)
    assert (actual[labels == 0] == 0).all()
    assert np.abs(actual[labels != 0]).max() > 0.01


EXTREMES = {
    "all high": np.full(V, 1e4),
    "all low": np.full(V, -1e4),
    "all zero": np.zeros(V),
    "one high": 1e4 * np.eye(V)[1],
    "one low": -1e4 * np.eye(V)[1],
    "both": 1e4 * (-1.0) ** np.arange(V),
}


@pytest.mark.parametrize("extreme", EXTREMES.values(), ids=EXTREMES)
def test_extreme_logits_stay_finite_and_right(extreme):
    labels, logits = np.array([[1, 2]]), np.tile(extreme, (1, 2, 1)).astype("float32")
    expected = paper.label_smoothed_cross_entropy(labels, logits, 0.1)
    np.testing.assert_allclose(
        label_smoothed_cross_entropy(labels, logits, 0.1), expected, rtol=1e-6, atol=1e-3
    )  # float32's step at 1e4
    gradient = gradient_of(lambda z: label_smoothed_cross_entropy(labels, z, 0.1), logits)
    expected = paper.softmax(logits) - paper.smoothed_labels(labels, V, 0.1)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)


COMPILED = tf.function(label_smoothed_cross_entropy, jit_compile=True)


@pytest.mark.parametrize("wrong", [-1, -V, V])
def test_a_label_out_of_range_fails_on_a_cpu_and_makes_the_loss_nan_elsewhere(
    labels, logits, wrong
):
    labels[0, 1] = wrong
    with pytest.raises(tf.errors.InvalidArgumentError, match=f" = {wrong} is not in"):
        label_smoothed_cross_entropy(tf.constant(labels), logits)
    losses = COMPILED(tf.constant(labels), tf.constant(logits)).numpy()
    np.testing.assert_array_equal(np.isnan(losses), labels == wrong)


def test_the_loss_is_the_mean_over_the_labels_that_count(labels, logits):
    losses = paper.label_smoothed_cross_entropy(labels, logits, 0.1)
    loss = LabelSmoothedCrossEntropy(0.1)
    mean = float(loss(labels, logits, real(labels)))
    assert mean == pytest.approx(losses[labels != 0].mean(), rel=1e-6)
    elsewhere = np.where((labels == 0)[..., None], 50 * logits[::-1], logits)
    assert float(loss(labels, elsewhere, real(labels))) == mean
    padded = np.pad(labels, [(0, 0), (0, 2)])
    wide = np.pad(logits, [(0, 0), (0, 2), (0, 0)])
    assert float(loss(padded, wide, real(padded))) == pytest.approx(mean, rel=1e-6)
    assert float(loss(labels, logits, np.zeros(labels.shape, "float32"))) == 0


def test_fractional_weights_weigh_a_label(labels, logits):
    weights = np.random.default_rng(2).random(labels.shape).astype("float32")
    losses = paper.label_smoothed_cross_entropy(labels, logits, 0.1)
    assert float(LabelSmoothedCrossEntropy(0.1)(labels, logits, weights)) == pytest.approx(
        np.average(losses, weights=weights), rel=1e-6
    )


@pytest.mark.parametrize("axes", [(), (1,)])
def test_a_weight_of_a_row_weighs_each_of_its_labels(labels, logits, axes):
    rows = np.random.default_rng(2).random((B, *axes)).astype("float32")
    weights = np.broadcast_to(rows.reshape(B, 1), labels.shape)
    measures = [LabelSmoothedCrossEntropy(0.1)]
    measures += [LabelAccuracy(), LabelCrossEntropy(), LabelCount()]
    for measure in measures:
        by_row = float(measure(labels, logits, sample_weight=rows))
        if isinstance(measure, keras.metrics.Metric):
            measure.reset_state()
        assert by_row == pytest.approx(float(measure(labels, logits, sample_weight=weights)))


def test_one_label_per_example_has_a_loss_too(labels, logits):
    assert LabelSmoothedCrossEntropy(0.1).call(labels[:, 1], logits[:, 1]).shape == (B,)
    np.testing.assert_allclose(
        LabelSmoothedCrossEntropy(0.1).call(labels[:, 1], logits[:, 1]),
        paper.label_smoothed_cross_entropy(labels, logits, 0.1)[:, 1],
        rtol=1e-6,
    )


@pytest.mark.parametrize("shape", [(T, B), (1, B * T), (B, 1), (1, T), (B, T, V), (B * T,)])
def test_labels_of_another_shape_than_the_logits_are_refused(logits, shape):
    """With as many labels, they were compared with the logits of other positions."""
    words = rf"^`labels` must be ids .* shapes {re.escape(str(shape))} and \({B}, {T}, {V}\)\. "
    with pytest.raises(ValueError, match=words):
        LabelSmoothedCrossEntropy()(np.zeros(shape, "int32"), logits)


def test_labels_may_have_a_last_axis_of_one_as_in_keras(labels, logits):
    loss = LabelSmoothedCrossEntropy()
    np.testing.assert_array_equal(loss(labels[..., None], logits), loss(labels, logits))


def test_config_round_trip():
    loss = LabelSmoothedCrossEntropy(0.3, name="other")
    clone = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert (type(clone), clone.get_config()) == (LabelSmoothedCrossEntropy, loss.get_config())
    assert (clone.label_smoothing, clone.reduction) == (0.3, loss.reduction)
    assert set(loss.get_config().items()).isdisjoint(
        LabelSmoothedCrossEntropy().get_config().items()
    )


CLASSES = 5


@pytest.fixture
def batches():
    """Three batches of different sizes, widths and shares of padding; the model is better on the
    small ones.
    """
    rng = np.random.default_rng(0)
    result = []
    for sentences, length, skill in ((8, 6, 0.0), (1, 3, 4.0), (2, 5, 1.0)):
        labels = rng.integers(1, CLASSES, (sentences, length))
        labels = np.where(rng.random((sentences, length)) < 0.3, 0, labels)
        logits = rng.normal(size=(sentences, length, CLASSES)) + skill * np.eye(CLASSES)[labels]
        result.append((labels, logits.astype("float32")))
    return result


METRICS = pytest.mark.parametrize("metric_type", [LabelAccuracy, LabelCrossEntropy])


@METRICS
def test_a_metric_of_no_labels_is_zero(metric_type):
    assert float(metric_type().result()) == 0


def test_accuracy_by_hand():
    labels = np.array([[1, 2, 3, 0]])
    logits = 2 * np.eye(CLASSES, dtype="float32")[np.array([[1, 4, 3, 0]])]
    assert float(LabelAccuracy()(labels, logits, real(labels))) == pytest.approx(2 / 3)
    assert float(LabelAccuracy()(labels, logits)) == pytest.approx(3 / 4)


def test_the_labels_that_count_are_counted(batches):
    metric = LabelCount()
    for labels, logits in batches:
        metric.update_state(labels, logits, real(labels))
    assert float(metric.result()) == sum((labels != 0).sum() for labels, _ in batches)
    assert float(metric.result()) < sum(labels.size for labels, _ in batches)


@METRICS
def test_a_metric_sums_bfloat16_logits_in_float32(metric_type):
    """In bfloat16, 257 tokens would be 256."""
    metric = metric_type()
    for labels in (256, 1):
        logits = keras.ops.zeros((1, labels, CLASSES), "bfloat16")
        metric.update_state(np.ones((1, labels), int), logits)
    assert float(metric.count) == 257


@METRICS
def test_fractional_weights_weigh_a_label_in_a_metric(metric_type, batches):
    metric = metric_type()
    random = np.random.default_rng(1)
    weighed = [(labels, logits, random.random(labels.shape)) for labels, logits in batches]
    # Label 0 is a label like any other: its weight is positive in one batch, and 0 in another.
    labels, logits, weights = weighed[0]
    assert (labels == 0).any()
    weighed.append((labels, 3 * logits[::-1], weights * real(labels)))
    for batch in weighed:
        metric.update_state(*batch)
    each = [
        (paper.label_smoothed_cross_entropy(labels, logits, 0.0), weights)
        if metric.name == "cross_entropy"
        else (logits.argmax(-1) == labels, weights)
        for labels, logits, weights in weighed
    ]
    expected = sum((value * weights).sum() for value, weights in each)
    expected /= sum(weights.sum() for _, weights in each)
    assert float(metric.result()) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("label_smoothing", [1.0, -0.1, 1.5, "0.1", None])
def test_a_smoothing_that_is_no_probability_is_refused(label_smoothing):
    words = rf"^`label_smoothing` must be a number in \[0, 1\)\. Received: {label_smoothing!r}\.$"
    with pytest.raises(ValueError, match=words):
        LabelSmoothedCrossEntropy(label_smoothing)


# R-Drop and scheduled sampling against their formulas in NumPy.
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
    """Stands for a model in training: gives fixed logits, and records its inputs."""

    loss = LabelSmoothedCrossEntropy(0.1)

    def __init__(self, logits):
        self.logits = tf.constant(logits, tf.float32)
        self.inputs = []

    def __call__(self, inputs, training):
        self.inputs.append([part.numpy() for part in inputs])
        return self.logits


def log_softmax(logits):
    logits = logits.astype(np.float64)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def smoothed(logits):
    return paper.label_smoothed_cross_entropy(LABELS.numpy(), logits, 0.1)


@pytest.mark.parametrize("alpha", [1.0, 5.0])
def test_r_drop_is_the_formula_of_two_passes(alpha):
    both = np.random.default_rng(1).normal(size=(6, 5, 20))
    first, second = both[:3], both[3:]
    model = PassesInTurn(both)
    total, logits = RDrop(alpha)(model, *BATCH)
    log_p, log_q = log_softmax(first), log_softmax(second)
    divergence = sum(
        (np.exp(log_a) * (log_a - log_b)).sum(axis=-1)
        for log_a, log_b in ((log_p, log_q), (log_q, log_p))
    )
    each = (smoothed(first) + smoothed(second)) / 2 + alpha / 4 * divergence
    assert float(total) == pytest.approx(float((each * WEIGHTS.numpy()).sum()), rel=1e-5)
    np.testing.assert_array_equal(logits, first.astype(np.float32))
    [[sources, targets]] = model.inputs
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
        sums = [tf.reduce_sum(weights * losses) for losses in (actual, expected, 2.0 * expected)]
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
    of_actual, of_expected, of_doubled = (tape.gradient(total, logits) for total in sums)
    np.testing.assert_allclose(of_actual, of_expected, rtol=1e-3, atol=1e-3)
    assert np.abs(of_actual - of_doubled).max() > 0.1


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
    """Always predicts token 4 + position."""

    def __init__(self, sentences=3):
        super().__init__(np.tile(40 * np.eye(20)[4:9], (sentences, 1, 1)))
        self.optimizer = tf.Module()
        self.optimizer.iterations = tf.Variable(0)


def targets_seen(probability, step, steps=10):
    model = Guesser()
    model.optimizer.iterations.assign(step)
    total, _ = ScheduledSampling(probability, steps)(model, *BATCH)
    (_, first), (_, second) = model.inputs
    np.testing.assert_array_equal(first, TARGET)
    return second, float(total)


def test_at_the_beginning_the_target_is_the_true_one():
    target, total = targets_seen(0.9, step=0)
    np.testing.assert_array_equal(target, TARGET)
    assert total == pytest.approx(
        float((smoothed(Guesser().logits.numpy()) * WEIGHTS.numpy()).sum())
    )


def test_a_guess_takes_the_place_of_the_token_after_its_position():
    """With probability 1, after the whole schedule; not the first token, and not padding."""
    target, _ = targets_seen(1.0, step=10)
    expected = TARGET.numpy().copy()
    guesses = np.tile(np.arange(4, 8), (3, 1))
    counts = WEIGHTS.numpy()[:, :-1] > 0
    expected[:, 1:][counts] = guesses[counts]
    np.testing.assert_array_equal(target, expected)
    assert (expected != TARGET.numpy()).sum() > 5


def share_replaced(step, batches=20, shape=(30, 5)):
    """The share of target tokens, all 0, that guesses replace."""
    random = np.random.default_rng(3)
    shares = []
    for _ in range(batches):
        model = Guesser(shape[0])
        model.optimizer.iterations.assign(step)
        labels = tf.constant(random.integers(0, 20, shape), tf.int32)
        inputs = (labels, tf.zeros_like(labels))
        ScheduledSampling(0.8, 10)(model, inputs, labels, tf.ones(shape))
        shares.append((model.inputs[1][1][:, 1:] != 0).mean())
    return np.mean(shares)


@pytest.mark.parametrize(("step", "share"), [(5, 0.4), (10, 0.8), (99, 0.8)])
def test_the_probability_rises_with_the_steps(step, share):
    assert share_replaced(step) == pytest.approx(share, abs=0.06)


def test_a_step_repeats_its_guesses_and_the_next_one_does_not():
    first, again, next_step = (targets_seen(0.5, step, steps=1)[0] for step in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, next_step)


@pytest.mark.parametrize("objective", [RDrop(5.0), ScheduledSampling(0.5, 1)], ids=str)
def test_the_gradient_of_an_objective_is_that_of_its_total(objective):
    """Compared with finite differences in one direction."""
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
