"""Section 5.4: label-smoothed cross-entropy and its gradient; float64, Keras and autodiff agree."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from oracles import paper
from small_model import small_model, transformer

from keras_transformer.training.loss import (
    LabelAccuracy,
    LabelCount,
    LabelCrossEntropy,
    LabelSmoothedCrossEntropy,
    label_smoothed_cross_entropy,
)

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
def test_the_loss_of_a_token_is_the_oracle_s(labels, logits, epsilon):
    expected = paper.label_smoothed_cross_entropy(labels, logits, epsilon)
    for actual in (
        label_smoothed_cross_entropy(labels, logits, epsilon),
        LabelSmoothedCrossEntropy(epsilon).call(labels, logits),
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


@EPSILONS
def test_the_loss_of_a_token_is_that_of_keras(labels, logits, epsilon):
    theirs = keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=epsilon, reduction=None
    )
    expected = theirs(np.eye(V, dtype="float32")[labels], logits)
    np.testing.assert_allclose(
        label_smoothed_cross_entropy(labels, logits, epsilon), expected, rtol=1e-6, atol=1e-6
    )


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


def test_weights_between_weigh_a_label(labels, logits):
    weights = np.random.default_rng(2).random(labels.shape).astype("float32")
    losses = paper.label_smoothed_cross_entropy(labels, logits, 0.1)
    assert float(LabelSmoothedCrossEntropy(0.1)(labels, logits, weights)) == pytest.approx(
        np.average(losses, weights=weights), rel=1e-6
    )


def test_one_label_an_example_has_a_loss_too(labels, logits):
    assert LabelSmoothedCrossEntropy(0.1).call(labels[:, 1], logits[:, 1]).shape == (B,)
    np.testing.assert_allclose(
        LabelSmoothedCrossEntropy(0.1).call(labels[:, 1], logits[:, 1]),
        paper.label_smoothed_cross_entropy(labels, logits, 0.1)[:, 1],
        rtol=1e-6,
    )


def test_no_label_that_counts_gives_zero(labels, logits):
    nothing = np.zeros(labels.shape, "float32")
    assert float(LabelSmoothedCrossEntropy()(labels, logits, nothing)) == 0


def test_config_round_trip():
    loss = LabelSmoothedCrossEntropy(0.3, name="other")
    clone = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(loss))
    assert (type(clone), clone.get_config()) == (LabelSmoothedCrossEntropy, loss.get_config())
    assert (clone.label_smoothing, clone.reduction) == (0.3, loss.reduction)
    assert set(loss.get_config().items()).isdisjoint(
        LabelSmoothedCrossEntropy().get_config().items()
    )


@pytest.mark.parametrize("body", [small_model, pytest.param(transformer, marks=pytest.mark.slow)])
def test_fit_gives_the_same_loss_with_and_without_xla(body):
    ids = np.array([[4, 5, 0], [6, 4, 5]])
    losses = []
    for jit_compile in (False, True):
        keras.utils.set_random_seed(0)
        model = body(size=V)
        model.compile(
            keras.optimizers.SGD(0.5), LabelSmoothedCrossEntropy(), jit_compile=jit_compile
        )
        losses.append(model.fit((ids, ids), ids, epochs=3, verbose=0).history["loss"])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    assert losses[0][2] < losses[0][0]


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
def test_padding_does_not_count(metric_type, batches):
    metric, (labels, logits) = metric_type(), batches[0]
    before = float(metric(labels, logits, real(labels)))
    metric.reset_state()
    elsewhere = np.where((labels == 0)[..., None], np.eye(CLASSES, dtype="float32")[0] * 9, logits)
    assert float(metric(labels, elsewhere, real(labels))) == before


@METRICS
def test_nothing_seen_is_zero(metric_type):
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


@pytest.mark.parametrize("metric_type", [LabelAccuracy, LabelCrossEntropy, LabelCount])
def test_config_round_trip_of_a_metric(metric_type):
    """By way of Keras' registry, without which a saved model that was compiled with the metric
    could not be loaded.
    """
    clone = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(metric_type(name="other"))
    )
    assert (type(clone), clone.name) == (metric_type, "other")


@METRICS
def test_a_metric_sums_bfloat16_logits_in_float32(metric_type):
    """In bfloat16, 257 tokens would be 256."""
    metric = metric_type()
    for _ in range(257):
        metric.update_state(np.array([[1]]), keras.ops.zeros((1, 1, CLASSES), "bfloat16"))
    assert float(metric.labels) == 257


@METRICS
def test_weights_between_weigh_a_label_in_a_metric(metric_type, batches):
    metric = metric_type()
    random = np.random.default_rng(1)
    weighed = [(labels, logits, random.random(labels.shape)) for labels, logits in batches]
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


@pytest.mark.parametrize("label_smoothing", [1.0, -0.1, 1.5])
def test_a_smoothing_that_is_no_probability_is_refused(label_smoothing):
    with pytest.raises(ValueError, match=r"`label_smoothing` must lie in \[0, 1\)\. Received: "):
        LabelSmoothedCrossEntropy(label_smoothing)
