"""Label-smoothed cross-entropy over the target tokens (Vaswani et al. 2017, section 5.4)."""

import keras
from keras import ops


def label_smoothed_cross_entropy(labels, logits, label_smoothing=0.1):
    """Cross-entropy against q = (1 - epsilon) onehot(y) + epsilon / V, for every token.

        loss     = -sum_v q_v log p_v = log sum_v exp(z_v) - (1 - epsilon) z_y - epsilon mean_v z_v
        gradient = p - q

    Neither q nor log p is ever made, and p only in the gradient, which is written out.

    Args:
        labels: ids y, (B, T).
        logits: z, (B, T, V).
        label_smoothing: epsilon_ls, probability in [0, 1).

    Returns:
        float32 nats, (B, T).

    Reference: Szegedy et al. 2015, "Rethinking the Inception Architecture", section 7.
    """
    vocabulary_size = logits.shape[-1]
    tokens = ops.reshape(ops.cast(labels, "int32"), (-1,))
    # (token, label) of every entry that the one-hot part of q touches.
    at_label = ops.stack([ops.arange(ops.size(tokens), dtype="int32"), tokens], axis=-1)
    on = 1.0 - label_smoothing
    off = label_smoothing / vocabulary_size

    @ops.custom_gradient
    def losses(z):
        # Everything relative to the largest entry, whose exponential is 1: nothing cancels.
        z_max = ops.max(z, axis=-1)
        total = ops.sum(ops.exp(z - z_max[:, None]), axis=-1)
        z_label = ops.take(ops.reshape(z, (-1,)), at_label[:, 0] * vocabulary_size + at_label[:, 1])

        def gradient(*args, upstream=None):
            upstream = args[-1] if upstream is None else upstream
            # The exponentials once more: kept since the forward pass, they would take as much
            # memory as the logits.
            dense = (
                ops.exp(z - z_max[:, None]) * (upstream / total)[:, None]
                - (off * upstream)[:, None]
            )
            p_label = ops.exp(z_label - z_max) / total
            return ops.scatter_update(dense, at_label, (p_label - off - on) * upstream)

        return on * (z_max - z_label) + label_smoothing * (z_max - ops.mean(z, axis=-1)) + ops.log(
            total
        ), gradient

    flat_logits = ops.reshape(ops.cast(logits, "float32"), (-1, vocabulary_size))
    return ops.reshape(losses(flat_logits), ops.shape(labels))


@keras.saving.register_keras_serializable("keras_transformer")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """The mean of `label_smoothed_cross_entropy` over the tokens of a batch, padding left out.

        loss = sum over tokens of the loss / number of tokens

    Args:
        label_smoothing: epsilon_ls, probability in [0, 1); the paper's 0.1.
        padding_id: the id that does not count.

    Call arguments:
        y_true: ids, (B, T).
        y_pred: logits, (B, T, V).

    Returns:
        float32 nats per target token, a scalar.
    """

    def __init__(self, label_smoothing=0.1, padding_id=0, name="label_smoothed_cross_entropy"):
        super().__init__(name=name, reduction=None)
        self.label_smoothing = label_smoothing
        self.padding_id = padding_id

    def call(self, y_true, y_pred):
        tokens = ops.sum(ops.cast(ops.not_equal(y_true, self.padding_id), "float32"))
        return self.total(y_true, y_pred) / ops.maximum(tokens, 1.0)

    def total(self, y_true, y_pred):
        """The sum over the tokens, not yet divided by their number: batches of different sizes can
        be added up.
        """
        losses = label_smoothed_cross_entropy(y_true, y_pred, self.label_smoothing)
        return ops.sum(losses * ops.cast(ops.not_equal(y_true, self.padding_id), losses.dtype))

    def get_config(self):
        return {
            "name": self.name,
            "label_smoothing": self.label_smoothing,
            "padding_id": self.padding_id,
        }
