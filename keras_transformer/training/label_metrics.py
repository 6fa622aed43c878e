"""What is measured per label while training (Vaswani et al. 2017, section 6.1 and table 3).

The weights of a batch say which labels count. Keras' own metrics are no replacement: they take the
mean of each row before they add up the batches, so that a label in a long batch would count less.
"""

import keras
from keras import ops


class _PerLabel(keras.metrics.Metric):
    """A weighted sum over the labels of an epoch, divided by the sum of their weights."""

    def __init__(self, name, dtype="float32"):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), "zeros", name="total")
        self.labels = self.add_variable((), "zeros", name="labels")

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Add a batch.

        Args:
            y_true: ids of any shape, (B, T) for tokens.
            y_pred: logits, of that shape and one axis more, (B, T, V).
            sample_weight: weights of the shape of `y_true`; None: every label counts.
        """
        weights = _weights(y_true, sample_weight)
        values = self.of_each_label(ops.cast(y_true, "int32"), y_pred)
        self.total.assign_add(ops.sum(values * weights))
        self.labels.assign_add(ops.sum(weights))

    def result(self):
        return ops.divide_no_nan(self.total, self.labels)


@keras.saving.register_keras_serializable("keras_transformer")
class LabelAccuracy(_PerLabel):
    """Share of the labels to which the model gives the largest logit.

    For a translator: of the target tokens, given those before.
    """

    def __init__(self, name="accuracy", dtype="float32"):
        super().__init__(name, dtype)

    def of_each_label(self, labels, logits):
        return ops.cast(
            ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels), "float32"
        )


@keras.saving.register_keras_serializable("keras_transformer")
class LabelCrossEntropy(_PerLabel):
    """-log p(y) in nats per label, without label smoothing; exp of it is the perplexity."""

    def __init__(self, name="cross_entropy", dtype="float32"):
        super().__init__(name, dtype)

    def of_each_label(self, labels, logits):
        return ops.sparse_categorical_crossentropy(
            labels, ops.cast(logits, "float32"), from_logits=True
        )


@keras.saving.register_keras_serializable("keras_transformer")
class LabelCount(keras.metrics.Sum):
    """Sum of the weights of the labels seen in this epoch."""

    def __init__(self, name="labels", dtype="float32"):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(ops.sum(_weights(y_true, sample_weight)))


def _weights(labels, sample_weight):
    """float32, of the shape of the labels."""
    if sample_weight is None:
        return ops.ones(ops.shape(labels), "float32")
    return ops.cast(sample_weight, "float32")
