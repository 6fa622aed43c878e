"""The optimizer (Vaswani et al. 2017, section 5.3: "the Adam optimizer with beta_1 = 0.9, beta_2 =
0.98 and epsilon = 10^-9"), and others that came later.

Later work added decoupled weight decay, clipping by the global norm, and a moving average of the
weights. Every optimizer here can have all of them.
"""

import keras
import numpy as np

from keras_transformer.training.checkpoint import WEIGHTS, step_of

BETAS = {"beta_1": 0.9, "beta_2": 0.98}
EPSILON = 1e-9
# Weights with two axes for which Muon was not made, because they are no matrices of a hidden layer:
# tables that are looked up or give the logits, also of labels and classes; positions, also those by
# which Linformer mixes keys; and the vectors of additive attention.
NOT_FOR_MUON = (
    *("/table$", "/positions/", "/vector$"),
    *("labels/kernel$", "classes/kernel$", "/(key|value)_projection$"),
)


class RunOptimizer:
    """What distinguishes our optimizers from Keras': vectors do not decay, and moving averages do
    not replace the weights.

    With `weight_decay`, `theta <- theta - lrate * weight_decay * theta` before each update, except
    for vectors: biases, and the gains and biases of layer normalization (Loshchilov and Hutter
    2017, "Decoupled Weight Decay Regularization"). A tied embedding decays: it projects, too.

    With `use_ema` it keeps `average_1 = theta_1`, `average_t = m average_(t-1) + (1 - m) theta_t`,
    where theta_t are the weights after update t. Neither zeros nor the initial weights are part of
    the average, so it needs no correction of a bias.
    """

    def build(self, variables):
        if not self.built:
            self.exclude_from_weight_decay(
                var_list=[variable for variable in variables if len(variable.shape) < 2]
            )
        super().build(variables)

    def finalize_variable_values(self, var_list):
        """Leave the weights as they were trained.

        At the end of every `model.fit` Keras calls this to replace the weights by their averages. A
        run is several calls of `fit`, and each must continue from the weights.
        """


@keras.saving.register_keras_serializable("keras_transformer")
class Adam(RunOptimizer, keras.optimizers.Adam):
    """Keras' Adam; with `weight_decay`, AdamW."""


@keras.saving.register_keras_serializable("keras_transformer")
class Muon(RunOptimizer, keras.optimizers.Muon):
    """Keras' Muon (Jordan et al. 2024; Liu et al. 2025, "Muon is Scalable for LLM Training"): the
    momentum of a matrix, `M = U S V^T`, is made nearly orthogonal, `U V^T`, and scaled so that
    Adam's rates suit it. Vectors, embeddings, the last projection and tables of positions are
    updated by Adam.
    """


@keras.saving.register_keras_serializable("keras_transformer")
class Adafactor(RunOptimizer, keras.optimizers.Adafactor):
    """Keras' Adafactor (Shazeer and Stern 2018): the second moment of a matrix is estimated from
    the means of its rows and columns; there is no first moment. An update has the length
    `rho RMS(theta)`, rho the smaller of the rate and `1 / sqrt(step)`, so that it needs rates above
    those of Adam. Keras keeps the estimate too: one slot as large as the weights, Adam has two.
    """


def _adam(schedule, **settings):
    return Adam(schedule, **BETAS, epsilon=EPSILON, **settings)


def _muon(schedule, **settings):
    betas = {f"adam_{name}": value for name, value in BETAS.items()}
    decay = {"adam_weight_decay": settings["weight_decay"]}
    own = {"exclude_layers": list(NOT_FOR_MUON), "epsilon": EPSILON}
    return Muon(schedule, **betas, **decay, **own, **settings)


MAKERS = {"adam": _adam, "adamw": _adam, "muon": _muon, "adafactor": Adafactor}


def optimizer(
    schedule: keras.optimizers.schedules.LearningRateSchedule | float,
    name: str = "adam",
    weight_decay: float = 0.0,
    clip_norm: float | None = None,
    ema: float | None = None,
) -> keras.optimizers.Optimizer:
    """Make the paper's Adam, or one that came later.

    Args:
        schedule: a `LearningRateSchedule`, or a rate.
        name: "adam", "adamw", "muon" or "adafactor".
        weight_decay: share of the weight matrices, times the learning rate, that decays each step;
            0 with "adam", positive with "adamw".
        clip_norm: largest global norm of the gradients; None: they are not clipped.
        ema: momentum m of the moving average of the weights, in (0, 1); None: none is kept.
    """
    if name not in MAKERS:
        raise ValueError(f"`name` must be one of {', '.join(MAKERS)}. Received: name={name!r}.")
    if weight_decay and name == "adam":
        raise ValueError(
            "`weight_decay` needs adamw, muon or adafactor. Received: "
            f"weight_decay={weight_decay}, optimizer={name!r}. Pass --optimizer=adamw."
        )
    if name == "adamw" and not weight_decay > 0:
        raise ValueError(
            "`weight_decay` must be positive with adamw, which is adam without it. Received: "
            f"weight_decay={weight_decay}. Try --weight_decay=0.01, or --optimizer=adam."
        )
    clips = clip_norm is None or clip_norm > 0
    if not (weight_decay >= 0 and clips and (ema is None or 0 < ema < 1)):
        raise ValueError(
            "`weight_decay` must be at least 0, `clip_norm` above 0 and `ema` in (0, 1). Received: "
            f"{weight_decay=}, {clip_norm=}, {ema=}."
        )
    settings = {
        "weight_decay": weight_decay or None,
        "global_clipnorm": clip_norm,
        **({} if ema is None else {"use_ema": True, "ema_momentum": ema}),
    }
    return MAKERS[name](schedule, **settings)


def averaged_weights(model: keras.Model) -> dict[str, np.ndarray]:
    """Copy the weights of a compiled model for evaluation, by name as in a checkpoint, in the order
    of `model.weights`: the moving averages if the optimizer keeps them and has made an update, else
    the weights themselves.
    """
    optimizer = model.optimizer
    averages = {}
    # Before the first update Keras' averages are zeros.
    if optimizer.use_ema and step_of(model):
        trainable = optimizer._trainable_variables
        # These attributes are private: Keras has no public way to an average.
        slots = optimizer._model_variables_moving_average
        averages = {variable.path: slot for variable, slot in zip(trainable, slots, strict=True)}
    variables = {
        WEIGHTS + variable.path: averages.get(variable.path, variable) for variable in model.weights
    }
    # Detach and copy: NumPy rejects a torch weight that has a gradient, and would share the memory
    # of an average.
    return {
        name: np.array(np.asarray(keras.ops.stop_gradient(variable)))
        for name, variable in variables.items()
    }
