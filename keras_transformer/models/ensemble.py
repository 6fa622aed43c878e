"""Several Transformers that translate as one: an addition to the single models of Vaswani et al.
2017, table 2.
"""

from keras import ops


class Ensemble:
    """The mean of what several models find likely.

        P(y_t | ...) = 1/M sum_m P_m(y_t | ...)

    It decodes and scores as a `Transformer` does, and cannot be trained.

    Args:
        models: `Transformer`s with one vocabulary; their other sizes may differ.

    Raises:
        ValueError: if there is no model, or their vocabularies have different sizes.
    """

    def __init__(self, models):
        self.models = list(models)
        sizes = sorted({model.hyperparameters.vocabulary_size for model in self.models})
        if len(sizes) != 1:
            raise ValueError(
                "`models` must be at least one, of one vocabulary. Received: "
                f"{len(self.models)}, of vocabulary_size={sizes}."
            )
        self.hyperparameters = self.models[0].hyperparameters
        self.weights = [weight for model in self.models for weight in model.weights]

    def __call__(self, inputs, training=False):
        """Log P of every next token, float32 (B, T, V), as logits. Arguments as of `Transformer`."""
        return _log_mean([model(inputs, training=training) for model in self.models])

    def encode(self, source):
        """What each model keeps of the source, (B, S), for decoding."""
        return [model.encode(source) for model in self.models]

    def empty_past(self, hypotheses):
        """Each model's cache before the first token."""
        return [model.empty_past(hypotheses) for model in self.models]

    def stepper(self):
        """What decodes with the weights as they are now."""
        return EnsembleStepper(self.models)


class EnsembleStepper:
    """A `Stepper` a model, with a past and an encoded source each."""

    def __init__(self, models):
        self._steppers = [model.stepper() for model in models]

    def step(self, ids, position, past, encoded):
        """`Stepper.step` of the mean."""
        steps = (
            one.step(ids, position, *own)
            for one, *own in zip(self._steppers, past, encoded, strict=True)
        )
        logits, past = zip(*steps, strict=True)
        return _log_mean(logits), list(past)

    def attentive_step(self, ids, position, past, encoded):
        """`Stepper.attentive_step` of the mean, of the attention as well."""
        steps = (
            one.attentive_step(ids, position, *own)
            for one, *own in zip(self._steppers, past, encoded, strict=True)
        )
        logits, past, attention = zip(*steps, strict=True)
        return _log_mean(logits), list(past), ops.mean(ops.stack(attention), axis=0)


def _log_mean(logits):
    """Log of the mean probability: float32 (..., V), from each model's logits."""
    log_probabilities = ops.stack([ops.log_softmax(model, axis=-1) for model in logits])
    return ops.logsumexp(log_probabilities, axis=0) - ops.log(float(len(logits)))
