"""Label-smoothed cross-entropy over the target tokens (Vaswani et al. 2017, section 5.4), and the
measures of each label (section 6.1 and table 3).
"""

import itertools
import numbers
from collections.abc import Callable

import keras
from keras import ops


def label_smoothed_cross_entropy(labels, logits, label_smoothing=0.1):
    """Compute the cross-entropy against q = (1 - epsilon) onehot(y) + epsilon / V, for every label.

        loss     = -sum_v q_v log p_v = log sum_v exp(z_v) - (1 - epsilon) z_y - epsilon mean_v z_v
        gradient = p - q

    Neither q nor log p is ever stored, and the gradient, which is explicit, does not keep p. A
    batch must have fewer than 2^31 logits: they are indexed by int32.

    Args:
        labels: ids y, (B, T); or of any shape, (...). A label outside 0 to V - 1 is an error on a
            CPU, and elsewhere its loss is NaN, as in Keras' own losses.
        logits: z, (B, T, V); or (..., V).
        label_smoothing: epsilon_ls, probability in [0, 1).

    Returns:
        float32 nats, of the shape of `labels`.

    Reference: Szegedy et al. 2015, "Rethinking the Inception Architecture", section 7.
    """
    labels = ops.cast(labels, "int32")
    *shape, vocabulary_size = logits.shape
    for sizes in itertools.zip_longest(labels.shape, shape, fillvalue=1):
        if None not in sizes and sizes[0] != sizes[1]:
            raise ValueError(
                "`labels` must be ids of the shape of `logits` without its last axis. Received: "
                f"shapes {tuple(labels.shape)} and {tuple(logits.shape)}. Of one-hot labels, pass "
                "keras.ops.argmax(labels, axis=-1)."
            )
    tokens = ops.reshape(labels, (-1,))
    # Keras lets an index below 0 count from the end; a label must not.
    tokens = ops.where(tokens < 0, tokens - vocabulary_size, tokens)
    # (token, label) of every entry that the one-hot part of q touches.
    at_label = ops.stack([ops.arange(ops.size(tokens), dtype="int32"), tokens], axis=-1)
    on = 1.0 - label_smoothing
    off = label_smoothing / vocabulary_size

    @ops.custom_gradient
    def losses(z):
        # p_max = 1 / sum exp(z - z_max), at least 1 / V. softmax is one operation: it takes less
        # time than differences, exponentials and their sum.
        z_max = ops.max(z, axis=-1)
        p_max = ops.max(ops.softmax(z), axis=-1)
        z_label = ops.take_along_axis(z, tokens[:, None], axis=-1)[:, 0]
        z_label = ops.where((tokens >= 0) & (tokens < vocabulary_size), z_label, float("nan"))

        def gradient(*args, upstream=None):
            upstream = args[-1] if upstream is None else upstream
            # Compute p again: if it were kept, it would take as much memory as the logits.
            dense = (ops.softmax(z) - off) * upstream[:, None]
            p_label = ops.exp(z_label - z_max) * p_max
            return ops.scatter_update(dense, at_label, (p_label - off - on) * upstream)

        spread = label_smoothing * (z_max - ops.mean(z, axis=-1))
        return on * (z_max - z_label) + spread - ops.log(p_max), gradient

    flat_logits = ops.reshape(ops.cast(logits, "float32"), (-1, vocabulary_size))
    return ops.reshape(losses(flat_logits), ops.shape(labels))


@keras.saving.register_keras_serializable("keras_transformer")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """`label_smoothed_cross_entropy` of every label; the weights of a batch say which labels count.

        loss = sum of weight * loss of a label / sum of weights

    Args:
        label_smoothing: epsilon_ls, probability in [0, 1); the paper's 0.1.

    Call arguments:
        y_true: ids, (B, T).
        y_pred: logits, (B, T, V).
        sample_weight: weights of the labels, (B, T), 0 where a label does not count; or of rows,
            (B,), for all labels of a row.

    Returns:
        float32 nats per label that counts, a scalar. `call` gives the loss of each label, (B, T).
    """

    def __init__(self, label_smoothing=0.1, name="label_smoothed_cross_entropy"):
        super().__init__(name=name, reduction="mean_with_sample_weight")
        if not (isinstance(label_smoothing, numbers.Real) and 0 <= label_smoothing < 1):
            received = f"Received: {label_smoothing!r}."
            raise ValueError(f"`label_smoothing` must be a number in [0, 1). {received}")
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        # Keras would divide by the sum of the weights as they come.
        if sample_weight is not None:
            sample_weight = _weights(y_true, sample_weight)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        return label_smoothed_cross_entropy(y_true, y_pred, self.label_smoothing)

    def get_config(self):
        return {"name": self.name, "label_smoothing": self.label_smoothing}


class _PerLabel(keras.metrics.Mean):
    """The mean over the labels of an epoch by their weights.

    Keras would take the mean of each row before it adds up the batches, so a label in a long row
    would count less. So each label is passed as a row of its own.
    """

    def __init__(self, name=None, dtype="float32"):
        super().__init__(name=name or self.measure, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        """Add a batch: ids of any shape, (B, T) for tokens, logits with one axis more, and weights
        of the ids' shape or of rows, (B,); without weights every label counts.
        """
        values = self.of_each_label(ops.cast(y_true, "int32"), y_pred)
        weights = _weights(y_true, sample_weight)
        super().update_state(ops.reshape(values, (-1,)), ops.reshape(weights, (-1,)))


@keras.saving.register_keras_serializable("keras_transformer")
class LabelAccuracy(_PerLabel):
    """Share of the labels to which the model gives the largest logit, given those before."""

    measure = "accuracy"

    def of_each_label(self, labels, logits):
        likeliest = ops.cast(ops.argmax(logits, axis=-1), "int32")
        return ops.cast(ops.equal(likeliest, labels), "float32")


@keras.saving.register_keras_serializable("keras_transformer")
class LabelCrossEntropy(_PerLabel):
    """-log p(y) in nats per label, without label smoothing; exp of it is the perplexity."""

    measure = "cross_entropy"

    def of_each_label(self, labels, logits):
        logits = ops.cast(logits, "float32")
        return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)


@keras.saving.register_keras_serializable("keras_transformer")
class LabelCount(keras.metrics.Sum):
    """Sum of the weights of the labels seen in this epoch."""

    def __init__(self, name="labels", dtype="float32"):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(ops.sum(_weights(y_true, sample_weight)))


def _weights(labels, sample_weight):
    if sample_weight is None:
        return ops.ones(ops.shape(labels), "float32")
    weights = ops.cast(sample_weight, "float32")
    missing = len(ops.shape(labels)) - len(weights.shape)
    if missing < 0:
        return weights
    weights = ops.reshape(weights, (*ops.shape(weights), *[1] * missing))
    return ops.broadcast_to(weights, ops.shape(labels))


def label_measures(model: keras.Model, batches: Callable) -> Callable[[], dict[str, float]]:
    """Make a function that measures a model's cross-entropy, in nats, and accuracy per label that
    counts, on the examples that `batches()` returns, as `model.evaluate` takes them.
    """
    model.compile(
        loss=LabelSmoothedCrossEntropy(0.0),
        weighted_metrics=[LabelCrossEntropy(), LabelAccuracy()],
        jit_compile=False,
    )

    def measure():
        result = model.evaluate(batches(), verbose=0, return_dict=True)
        return {name: result[name] for name in ("cross_entropy", "accuracy")}

    return measure
