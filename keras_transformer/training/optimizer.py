"""The optimizer (Vaswani et al. 2017, section 5.3: "the Adam optimizer with beta_1 = 0.9, beta_2 =
0.98 and epsilon = 10^-9"), and others that came later.

Later work added decoupled weight decay, clipping by the global norm, and a moving average of the
weights. All of them hold for each optimizer.
"""

import keras
import numpy as np

from keras_transformer.training.checkpoint import WEIGHTS, step_of

BETAS = {"beta_1": 0.9, "beta_2": 0.98}
EPSILON = 1e-9
# Weights with two axes that are no matrices of a hidden layer, for which Muon was not made: tables
# that are looked up or give the logits, also of labels and classes; positions, also those by which
# Linformer mixes keys; and the vectors of additive attention.
NOT_FOR_MUON = (
    *("/table$", "/positions/", "/vector$"),
    *("labels/kernel$", "classes/kernel$", "/(key|value)_projection$"),
)


class OfARun:
    """What distinguishes our optimizers from Keras': vectors do not decay, and moving averages do
    not replace the weights.

    With `weight_decay`, `theta <- theta - lrate * weight_decay * theta` before each update. Biases
    and the gains and biases of layer normalization, the vectors among the weights, do not decay;
    the tied embedding does, because it is the output projection too.

    With `use_ema` it keeps `average_1 = theta_1`, `average_t = m average_(t-1) + (1 - m) theta_t`,
    where theta_t are the weights after update t. Neither zeros nor the initial weights are part of
    the average, so it needs no correction of a bias.

    Reference: Loshchilov and Hutter 2017, "Decoupled Weight Decay Regularization".
    """

    def build(self, variables):
        if not self.built:
            self.exclude_from_weight_decay(
                var_list=[variable for variable in variables if len(variable.shape) < 2]
            )
        super().build(variables)

    def finalize_variable_values(self, var_list):
        """Leave the weights as they were trained.

        At the end of every `model.fit` Keras calls this to replace the weights by their averages.
        A run is several calls of `fit`, and goes on from checkpoints: from averages it would go on
        as another run.
        """


@keras.saving.register_keras_serializable("keras_transformer")
class Adam(OfARun, keras.optimizers.Adam):
    """Keras' Adam; with `weight_decay`, AdamW."""


@keras.saving.register_keras_serializable("keras_transformer")
class Muon(OfARun, keras.optimizers.Muon):
    """Keras' Muon: the momentum of a matrix, `M = U S V^T`, is made nearly orthogonal, `U V^T`, and
    scaled so that Adam's rates suit it. Vectors, embeddings, the last projection and tables of
    positions are updated by Adam.

    Reference: Jordan et al. 2024, "Muon"; Liu et al. 2025, "Muon is Scalable for LLM Training".
    """


@keras.saving.register_keras_serializable("keras_transformer")
class Adafactor(OfARun, keras.optimizers.Adafactor):
    """Keras' Adafactor: the second moment of a matrix is estimated from the means of its rows and
    columns; there is no first moment. An update has the length `rho RMS(theta)`, rho the smaller of
    the rate and `1 / sqrt(step)`, so that it needs rates above those of Adam.

    Keras keeps the estimate too: one slot as large as the weights, where Adam has two.

    Reference: Shazeer and Stern 2018, "Adafactor".
    """


def _adam(schedule, settings):
    return Adam(schedule, **BETAS, epsilon=EPSILON, **settings)


def _muon(schedule, settings):
    betas = {f"adam_{name}": value for name, value in BETAS.items()}
    decay = {"adam_weight_decay": settings["weight_decay"]}
    others = {"exclude_layers": list(NOT_FOR_MUON), "epsilon": EPSILON}
    return Muon(schedule, **betas, **decay, **others, **settings)


def _adafactor(schedule, settings):
    return Adafactor(schedule, **settings)


MAKERS = {"adam": _adam, "adamw": _adam, "muon": _muon, "adafactor": _adafactor}


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

    Raises:
        ValueError: naming the argument that is out of its range, and a remedy.
    """
    _check(name, weight_decay, clip_norm, ema)
    settings = {
        "weight_decay": weight_decay or None,
        "global_clipnorm": clip_norm,
        **({} if ema is None else {"use_ema": True, "ema_momentum": ema}),
    }
    return MAKERS[name](schedule, settings)


def _check(name, weight_decay, clip_norm, ema):
    if name not in MAKERS:
        raise ValueError(f"`name` must be one of {', '.join(MAKERS)}. Received: name={name!r}.")
    if not 0 <= weight_decay < float("inf"):
        raise ValueError(
            f"`weight_decay` must be at least 0. Received: weight_decay={weight_decay}. Try 0.01."
        )
    if weight_decay and name == "adam":
        raise ValueError(
            "`weight_decay` needs adamw, muon or adafactor. Received: "
            f"weight_decay={weight_decay}, name={name!r}. Pass --optimizer=adamw."
        )
    if name == "adamw" and not weight_decay:
        raise ValueError(
            "`weight_decay` must be positive with adamw, which is adam without it. Received: "
            f"weight_decay={weight_decay}. Try --weight_decay=0.01, or --optimizer=adam."
        )
    if clip_norm is not None and not 0 < clip_norm < float("inf"):
        raise ValueError(
            f"`clip_norm` must be positive. Received: clip_norm={clip_norm}. Try 1.0, or None "
            "for no clipping."
        )
    if ema is not None and not 0 < ema < 1:
        raise ValueError(
            f"`ema` must be a momentum in (0, 1). Received: ema={ema}. Try 0.999, or None for no "
            "average."
        )


def averaged_weights(model: keras.Model) -> dict[str, np.ndarray]:
    """Copy the weights to evaluate: the moving averages if the optimizer keeps them, else the
    weights themselves.

    Args:
        model: a compiled `keras.Model` with a built optimizer.

    Returns:
        Arrays by name, named as in a checkpoint, in the order of `model.weights`. Before the first
        update they are the weights.
    """
    optimizer = model.optimizer
    averages = {}
    # Before the first update Keras' averages are zeros.
    if optimizer.use_ema and step_of(model):
        variables = optimizer._trainable_variables
        # Private attributes of Keras, which has no public way to an average.
        slots = optimizer._model_variables_moving_average
        averages = {variable.path: slot for variable, slot in zip(variables, slots, strict=True)}
    kept = {
        WEIGHTS + variable.path: averages.get(variable.path, variable) for variable in model.weights
    }
    # Detached and copied: NumPy takes no weight of torch that has a gradient, and would share the
    # memory of an average.
    return {
        name: np.array(np.asarray(keras.ops.stop_gradient(variable)))
        for name, variable in kept.items()
    }
