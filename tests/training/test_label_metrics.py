"""Metrics per label: what several batches give is what all their labels together give."""

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.training.label_metrics import LabelAccuracy, LabelCount, LabelCrossEntropy

V = 5


@pytest.fixture
def batches():
    """Three batches of different sizes, widths and shares of padding; the model is better on the
    small ones.
    """
    rng = np.random.default_rng(0)
    result = []
    for sentences, length, skill in ((8, 6, 0.0), (1, 3, 4.0), (2, 5, 1.0)):
        labels = np.where(
            rng.random((sentences, length)) < 0.3, 0, rng.integers(1, V, (sentences, length))
        )
        result.append(
            (
                labels,
                (rng.normal(size=(sentences, length, V)) + skill * np.eye(V)[labels]).astype(
                    "float32"
                ),
            )
        )
    return result


def real(labels):
    """Weights that leave out padding, id 0."""
    return (labels != 0).astype("float32")


def values(name, labels, logits):
    """The metric of every token, padding left out, in float64."""
    real = labels != 0
    if name == "accuracy":
        return (logits.argmax(-1) == labels)[real].astype("float64")
    return paper.label_smoothed_cross_entropy(labels, logits, 0.0)[real]


METRICS = pytest.mark.parametrize("metric_type", [LabelAccuracy, LabelCrossEntropy])


@METRICS
def test_batches_of_different_sizes_pool_their_tokens(metric_type, batches):
    metric = metric_type()
    for labels, logits in batches:
        metric.update_state(labels, logits, real(labels))
    each = [values(metric.name, *batch) for batch in batches]
    assert float(metric.result()) == pytest.approx(np.concatenate(each).mean(), rel=1e-6)
    assert float(metric.result()) != pytest.approx(
        np.mean([batch.mean() for batch in each]), rel=0.05
    )


@METRICS
def test_padding_does_not_count(metric_type, batches):
    metric, (labels, logits) = metric_type(), batches[0]
    before = float(metric(labels, logits, real(labels)))
    metric.reset_state()
    elsewhere = np.where((labels == 0)[..., None], np.eye(V, dtype="float32")[0] * 9, logits)
    assert float(metric(labels, elsewhere, real(labels))) == before
    metric.reset_state()
    # A control: without weights every label counts, those of class 0 too.
    assert float(metric(labels, logits)) != pytest.approx(before, rel=1e-3)


@METRICS
def test_reset_forgets(metric_type, batches):
    metric = metric_type()
    metric.update_state(*batches[0], real(batches[0][0]))
    metric.reset_state()
    metric.update_state(*batches[1], real(batches[1][0]))
    assert float(metric.result()) == pytest.approx(
        values(metric.name, *batches[1]).mean(), rel=1e-6
    )


@METRICS
def test_nothing_seen_is_zero(metric_type):
    assert float(metric_type().result()) == 0


def test_cross_entropy_of_equal_logits_is_the_log_of_the_vocabulary():
    assert float(
        LabelCrossEntropy()(np.ones((2, 3), "int32"), np.zeros((2, 3, V), "float32"))
    ) == pytest.approx(np.log(V), rel=1e-6)


def test_accuracy_by_hand():
    labels, logits = (
        np.array([[1, 2, 3, 0]]),
        2 * np.eye(V, dtype="float32")[np.array([[1, 4, 3, 0]])],
    )
    assert float(LabelAccuracy()(labels, logits, real(labels))) == pytest.approx(2 / 3)
    assert float(LabelAccuracy()(labels, logits)) == pytest.approx(3 / 4)


def test_the_labels_that_count_are_counted(batches):
    metric = LabelCount()
    for labels, logits in batches:
        metric.update_state(labels, logits, real(labels))
    assert float(metric.result()) == sum((labels != 0).sum() for labels, _ in batches)
    assert float(metric.result()) < sum(labels.size for labels, _ in batches)


@pytest.mark.parametrize("metric_type", [LabelAccuracy, LabelCrossEntropy, LabelCount])
def test_config_round_trip(metric_type):
    """By way of Keras' registry, without which a saved model that was compiled with the metric
    could not be loaded.
    """
    clone = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(metric_type(name="other"))
    )
    assert (type(clone), clone.name) == (metric_type, "other")


@METRICS
def test_bfloat16_logits_are_summed_in_float32(metric_type):
    """In bfloat16, 257 tokens would be 256."""
    metric = metric_type()
    for _ in range(257):
        metric.update_state(np.array([[1]]), keras.ops.zeros((1, 1, V), "bfloat16"))
    assert float(metric.labels) == 257


@METRICS
def test_weights_between_weigh_a_label(metric_type, batches):
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


def test_control_keras_own_accuracy_weighs_a_batch_by_its_width(batches):
    """Hence metrics of ours."""
    ours = LabelAccuracy()
    theirs = keras.metrics.SparseCategoricalAccuracy()
    for labels, logits in batches:
        ours.update_state(labels, logits, real(labels))
        theirs.update_state(labels, logits, real(labels))
    assert float(theirs.result()) != pytest.approx(float(ours.result()), rel=1e-2)
