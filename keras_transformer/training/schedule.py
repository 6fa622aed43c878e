"""The learning rate over time (Vaswani et al. 2017, section 5.3, eq. 3), and two curves that came
after the paper.

Steps count from 1, as in the paper. Keras passes a schedule the number of updates already made: the
first update, for which Keras passes 0, is step 1.
"""

import math
import numbers

import keras
from keras import ops
from keras.optimizers.schedules import CosineDecay, LearningRateSchedule, PolynomialDecay

NAMES = ("transformer", "cosine", "constant")


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
    if name not in NAMES:
        raise ValueError(f"`name` must be one of {', '.join(NAMES)}. Received: name={name!r}.")
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
