"""The optimizer (Vaswani et al. 2017, section 5.3: "the Adam optimizer with beta_1 = 0.9, beta_2 =
0.98 and epsilon = 10^-9") and its learning rate over time (eq. 3), and others that came later.

Later work added decoupled weight decay, clipping by the global norm, and a moving average of the
weights. Every optimizer here can have all of them.

Steps of a schedule count from 1, as in the paper. Keras passes a schedule the number of updates
already made: the first update, for which Keras passes 0, is step 1.
"""

import math
import numbers

import keras
import numpy as np
from keras import ops
from keras.optimizers.schedules import CosineDecay, LearningRateSchedule, PolynomialDecay

from keras_transformer.training.checkpoint import WEIGHTS, step_of

SCHEDULES = ("transformer", "cosine", "constant")
BETAS = {"beta_1": 0.9, "beta_2": 0.98}
EPSILON = 1e-9
# Weights with two axes for which Muon was not made, because they are no matrices of a hidden layer:
# tables that are looked up or give the logits, also of labels and classes; positions, also those by
# which Linformer mixes keys; and the vectors of additive attention.
NOT_FOR_MUON = (
    *("/table$", "/positions/", "/vector$"),
    *("labels/kernel$", "classes/kernel$", "/(key|value)_projection$"),
)


@keras.saving.register_keras_serializable("keras_transformer")
class TransformerSchedule(LearningRateSchedule):
    """Linear warm-up, then decay with the inverse square root of the step.

        lrate = scale * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)

    The peak, scale * (d_model * warmup_steps)^-0.5, is reached at step = warmup_steps.

    Args:
        d_model: width of the model.
        warmup_steps: steps of linear growth; the paper's 4000.
        scale: factor on the whole curve; the paper's 1.

    Call arguments:
        step: updates already made, a number or a scalar tensor.

    Returns:
        float32, a scalar.
    """

    def __init__(self, d_model: int, warmup_steps: int = 4000, scale: float = 1.0):
        super().__init__()
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.scale = scale
        for name, value in self.get_config().items():
            if not (isinstance(value, numbers.Real) and value > 0 and math.isfinite(value)):
                received = f"Received: {name}={value!r}."
                raise ValueError(f"`{name}` must be a positive number. {received}")

    def __call__(self, step):
        step = ops.cast(step, "float32") + 1.0
        grown_or_decayed = ops.minimum(step**-0.5, step * self.warmup_steps**-1.5)
        return self.scale * self.d_model**-0.5 * grown_or_decayed

    def get_config(self):
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps, "scale": self.scale}


def cosine_schedule(peak: float, warmup_steps: int, total_steps: int) -> LearningRateSchedule:
    """Make a linear warm-up, then half a cosine from the peak to 0 (Loshchilov and Hutter 2016,
    "SGDR: Stochastic Gradient Descent with Warm Restarts", eq. 5, without restarts).

        done  = (step - warmup_steps) / (total_steps - warmup_steps), within [0, 1]
        lrate = peak * min(step / warmup_steps, 1) * (1 + cos(pi done)) / 2
    """
    if total_steps <= warmup_steps:
        raise ValueError(
            f"--schedule=cosine needs --max_steps above --warmup_steps={warmup_steps}. Received: "
            f"--max_steps={total_steps}. Train longer, or warm up less."
        )
    # Keras counts from 0: it starts with the rate of step 1, and warms up in one update less.
    return CosineDecay(
        initial_learning_rate=peak / warmup_steps,
        decay_steps=total_steps - warmup_steps,
        warmup_target=peak,
        warmup_steps=warmup_steps - 1,
    )


def constant_schedule(rate: float, warmup_steps: int) -> LearningRateSchedule:
    """Make a linear warm-up to a rate that stays: `lrate = rate * min(step / warmup_steps, 1)`."""
    # A polynomial of power 1 that "decays" upwards. Keras requires at least one step of it: with
    # warmup_steps=1 both its ends are the rate.
    return PolynomialDecay(
        initial_learning_rate=rate / warmup_steps,
        decay_steps=max(warmup_steps - 1, 1),
        end_learning_rate=rate,
    )


def schedule(
    name: str, d_model: int, warmup_steps: int, scale: float, peak: float | None, total_steps: int
) -> LearningRateSchedule:
    """Make the schedule of a run.

    Args:
        name: "transformer", the paper's; "cosine"; or "constant".
        d_model, warmup_steps, scale: see `TransformerSchedule`.
        peak: highest rate of the cosine and the constant schedule; None: that of the paper's.
        total_steps: step at which the cosine ends.
    """
    if name not in SCHEDULES:
        raise ValueError(f"`name` must be one of {', '.join(SCHEDULES)}. Received: name={name!r}.")
    if name == "transformer":
        if peak is not None:
            raise ValueError(
                "the schedule transformer computes its peak from d_model and warmup_steps. "
                f"Received: learning_rate={peak:g}. Pass --schedule=constant or cosine, or scale "
                "the paper's by --learning_rate_scale."
            )
        return TransformerSchedule(d_model, warmup_steps, scale)
    peak = peak or scale * (d_model * warmup_steps) ** -0.5
    if name == "cosine":
        return cosine_schedule(peak, warmup_steps, total_steps)
    return constant_schedule(peak, warmup_steps)


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
    schedule: LearningRateSchedule | float,
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
        name: np.array(np.asarray(ops.stop_gradient(variable)))
        for name, variable in variables.items()
    }
