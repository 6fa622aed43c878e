"""Per-token metrics: what several batches give is what all their tokens together give."""

import keras
import numpy as np
import pytest
from oracles import paper

from keras_transformer.training.metrics import TargetTokens, TokenAccuracy, TokenCrossEntropy

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


def values(name, labels, logits):
    """The metric of every token, padding left out, in float64."""
    real = labels != 0
    if name == "accuracy":
        return (logits.argmax(-1) == labels)[real].astype("float64")
    return paper.label_smoothed_cross_entropy(labels, logits, 0.0)[real]


METRICS = pytest.mark.parametrize("metric_type", [TokenAccuracy, TokenCrossEntropy])


@METRICS
def test_batches_of_different_sizes_pool_their_tokens(metric_type, batches):
    metric = metric_type()
    for labels, logits in batches:
        metric.update_state(labels, logits)
    each = [values(metric.name, *batch) for batch in batches]
    assert float(metric.result()) == pytest.approx(np.concatenate(each).mean(), rel=1e-6)
    assert float(metric.result()) != pytest.approx(
        np.mean([batch.mean() for batch in each]), rel=0.05
    )


@METRICS
def test_padding_does_not_count(metric_type, batches):
    metric, (labels, logits) = metric_type(), batches[0]
    before = float(metric(labels, logits))
    metric.reset_state()
    elsewhere = np.where((labels == 0)[..., None], np.eye(V, dtype="float32")[0] * 9, logits)
    assert float(metric(labels, elsewhere)) == before
    metric.reset_state()
    assert float(metric(np.where(labels == 0, 1, labels), logits)) != pytest.approx(
        before, rel=1e-3
    )


@METRICS
def test_reset_forgets(metric_type, batches):
    metric = metric_type()
    metric.update_state(*batches[0])
    metric.reset_state()
    metric.update_state(*batches[1])
    assert float(metric.result()) == pytest.approx(
        values(metric.name, *batches[1]).mean(), rel=1e-6
    )


@METRICS
def test_nothing_seen_is_zero(metric_type):
    assert float(metric_type().result()) == 0


def test_cross_entropy_of_equal_logits_is_the_log_of_the_vocabulary():
    assert float(
        TokenCrossEntropy()(np.ones((2, 3), "int32"), np.zeros((2, 3, V), "float32"))
    ) == pytest.approx(np.log(V), rel=1e-6)


def test_accuracy_by_hand():
    labels, logits = (
        np.array([[1, 2, 3, 0]]),
        2 * np.eye(V, dtype="float32")[np.array([[1, 4, 3, 0]])],
    )
    assert float(TokenAccuracy()(labels, logits)) == pytest.approx(2 / 3)


def test_target_tokens_count_what_is_not_padding(batches):
    metric = TargetTokens()
    for labels, logits in batches:
        metric.update_state(labels, logits)
    assert float(metric.result()) == sum((labels != 0).sum() for labels, _ in batches)
    assert float(metric.result()) < sum(labels.size for labels, _ in batches)


@pytest.mark.parametrize("metric_type", [TokenAccuracy, TokenCrossEntropy, TargetTokens])
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
    assert float(metric.tokens) == 257
