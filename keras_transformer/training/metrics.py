"""What is watched while training (Vaswani et al. 2017, section 6.1 and Table 3 for perplexity): per
token, padding left out.
"""

import keras
from keras import ops

PAD = 0


class _PerToken(keras.metrics.Metric):
    """A sum over the tokens of an epoch, divided by their number."""

    def __init__(self, name, dtype="float32"):
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_variable((), "zeros", name="total")
        self.tokens = self.add_variable((), "zeros", name="tokens")

    def update_state(self, y_true, y_pred, sample_weight=None):
        real = ops.cast(ops.not_equal(y_true, PAD), "float32")
        self.total.assign_add(ops.sum(self.of_each_token(ops.cast(y_true, "int32"), y_pred) * real))
        self.tokens.assign_add(ops.sum(real))

    def result(self):
        return self.total / ops.maximum(self.tokens, 1.0)


@keras.saving.register_keras_serializable("keras_transformer")
class TokenAccuracy(_PerToken):
    """Share of target tokens that the model, given those before, finds likeliest. (B, T) ids, (B,
    T, V) logits.
    """

    def __init__(self, name="accuracy", dtype="float32"):
        super().__init__(name, dtype)

    def of_each_token(self, labels, logits):
        return ops.cast(
            ops.equal(ops.cast(ops.argmax(logits, axis=-1), "int32"), labels), "float32"
        )


@keras.saving.register_keras_serializable("keras_transformer")
class TokenCrossEntropy(_PerToken):
    """-log p(y) in nats per target token, without label smoothing; exp of it is the perplexity per
    piece.
    """

    def __init__(self, name="cross_entropy", dtype="float32"):
        super().__init__(name, dtype)

    def of_each_token(self, labels, logits):
        return ops.sparse_categorical_crossentropy(
            labels, ops.cast(logits, "float32"), from_logits=True
        )


@keras.saving.register_keras_serializable("keras_transformer")
class TargetTokens(keras.metrics.Sum):
    """Target tokens seen in this epoch, padding left out: what tokens a second are counted from."""

    def __init__(self, name="tokens", dtype="float32"):
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(ops.sum(ops.cast(ops.not_equal(y_true, PAD), "float32")))
