"""Several models that translate as one, as in the ensembles of Vaswani et al. 2017, table 2."""

from collections.abc import Sequence
from typing import Any

from keras import ops

from keras_transformer.layers.tensors import State, Tensor
from keras_transformer.models.transformer import EncoderDecoder


class Ensemble:
    """The mean of the probabilities that several models give.

        P(y_t | ...) = 1/M sum_m P_m(y_t | ...)

    It decodes and scores as an `EncoderDecoder` does. It cannot be trained.

    Args:
        models: `EncoderDecoder`s with one vocabulary; all else may differ.
    """

    # The models may differ in layers and heads, so they have no common attention to show.
    gives_attention = False

    def __init__(self, models: Sequence[EncoderDecoder]):
        self.models = list(models)
        sizes = sorted({model.hyperparameters.vocabulary_size for model in self.models})
        if len(sizes) != 1:
            raise ValueError(
                "`models` must be at least one, of one vocabulary. Received: "
                f"{len(self.models)}, of vocabulary_size={sizes}."
            )
        self.kind = f"An ensemble of {len(self.models)} models"
        self.hyperparameters = self.models[0].hyperparameters
        self.weights = [weight for model in self.models for weight in model.weights]

    def __call__(self, inputs: tuple[Tensor, Tensor], training: bool = False) -> Tensor:
        """Return log P of every next token, float32 (B, T, V), in place of a model's logits."""
        return _log_mean([model(inputs, training=training) for model in self.models])

    def encode(self, source: Tensor) -> list[dict[str, Any]]:
        """Run each model's encoder on the source, (B, S), and keep what decoding needs."""
        return [model.encode(source) for model in self.models]

    def stepper(self, *tables: Tensor | None) -> "EnsembleStepper":
        """Make a stepper of all models, with their current weights and the table of each."""
        return EnsembleStepper(self.models, tables or [None] * len(self.models))


class EnsembleStepper:
    """A `Stepper` of several models: lists of their states and sources, the mean of attentions."""

    def __init__(self, models: Sequence[EncoderDecoder], tables: Sequence[Tensor | None]):
        self._steppers = [model.stepper(table) for model, table in zip(models, tables, strict=True)]
        self.growing = [stepper.growing for stepper in self._steppers]

    def start(self, rows: int | Tensor) -> State:
        return [stepper.start(rows) for stepper in self._steppers]

    def is_token(self, source: list[dict[str, Any]]) -> Tensor:
        return self._steppers[0].is_token(source[0])

    def __call__(
        self, ids: Tensor, position: Tensor, state: State, source: list[dict[str, Any]]
    ) -> tuple[Tensor, State, Tensor]:
        steps = (
            stepper(ids, position, *own)
            for stepper, *own in zip(self._steppers, state, source, strict=True)
        )
        logits, state, attention = zip(*steps, strict=True)
        return _log_mean(logits), list(state), ops.mean(ops.stack(attention), axis=0)


def _log_mean(logits):
    """Return the log of the mean probability, float32 (..., V), from each model's logits."""
    log_probabilities = ops.stack([ops.log_softmax(z, axis=-1) for z in logits])
    return ops.logsumexp(log_probabilities, axis=0) - ops.log(float(len(logits)))
