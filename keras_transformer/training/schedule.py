"""The learning rate over time (Vaswani et al. 2017, section 5.3, eq. 3), and two other curves for
what comes after the paper.
"""

import math

import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_transformer")
class TransformerSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then decay with the inverse square root of the step.

        lrate = scale * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)

    The peak, scale * (d_model * warmup_steps)^-0.5, is reached at step = warmup_steps. Steps count
    from 1, as in the paper: Keras hands over the number of updates already made, so the first
    update uses step 1.

    Args:
        d_model: width of the model.
        warmup_steps: steps of linear growth; the paper's 4000.
        scale: factor on the whole curve; the paper's 1.

    Raises:
        ValueError: if an argument is not positive.
    """

    def __init__(self, d_model, warmup_steps=4000, scale=1.0):
        super().__init__()
        _refuse_unless_positive(d_model=d_model, warmup_steps=warmup_steps, scale=scale)
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.scale = scale

    def __call__(self, step):
        step = _step_number(step)
        return (
            self.scale
            * self.d_model**-0.5
            * ops.minimum(step**-0.5, step * self.warmup_steps**-1.5)
        )

    def get_config(self):
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps, "scale": self.scale}


@keras.saving.register_keras_serializable("keras_transformer")
class CosineSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then half a cosine from the peak down to a share of it, which stays.

        left  = (total_steps - step) / (total_steps - warmup_steps), within [0, 1]
        lrate = peak * min(step / warmup_steps, 1) * (end_factor + (1 - end_factor) * (1 - cos(pi
        left)) / 2)

    Steps count from 1: the peak is used at step = warmup_steps, the end from step = total_steps on.

    Args:
        peak: highest rate.
        warmup_steps: steps of linear growth; 1 for none.
        total_steps: step at which the cosine ends, above `warmup_steps`.
        end_factor: last rate as a share of the peak, in [0, 1].

    Raises:
        ValueError: if an argument is out of its range.

    Reference: Loshchilov and Hutter 2016, "SGDR: Stochastic Gradient Descent with Warm Restarts",
        eq. 5, without restarts.
    """

    def __init__(self, peak, warmup_steps, total_steps, end_factor=0.0):
        super().__init__()
        _refuse_unless_positive(peak=peak, warmup_steps=warmup_steps, total_steps=total_steps)
        if total_steps <= warmup_steps:
            raise ValueError(
                "`total_steps` must be above `warmup_steps`. Received: "
                f"total_steps={total_steps}, warmup_steps={warmup_steps}. "
                "Train for more steps, or warm up for fewer."
            )
        if not 0 <= end_factor <= 1:
            raise ValueError(
                f"`end_factor` must be in [0, 1]. Received: end_factor={end_factor}. Try 0.1, a "
                "tenth of the peak."
            )
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps
        self.end_factor = end_factor

    def __call__(self, step):
        step = _step_number(step)
        left = ops.clip(
            (self.total_steps - step) / (self.total_steps - self.warmup_steps), 0.0, 1.0
        )
        # (1 - cos(pi left)) / 2, without the difference that loses all digits of a float32 near the
        # end.
        share = ops.sin(0.5 * math.pi * left) ** 2
        return (
            self.peak
            * ops.minimum(step / self.warmup_steps, 1.0)
            * (self.end_factor + (1.0 - self.end_factor) * share)
        )

    def get_config(self):
        names = ("peak", "warmup_steps", "total_steps", "end_factor")
        return {name: getattr(self, name) for name in names}


@keras.saving.register_keras_serializable("keras_transformer")
class ConstantSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to a rate that stays: `lrate = rate * min(step / warmup_steps, 1)`, steps
    counted from 1.

    Args:
        rate: the rate after the warm-up.
        warmup_steps: steps of linear growth; 1 for none.

    Raises:
        ValueError: if an argument is not positive.
    """

    def __init__(self, rate, warmup_steps):
        super().__init__()
        _refuse_unless_positive(rate=rate, warmup_steps=warmup_steps)
        self.rate = rate
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        return self.rate * ops.minimum(_step_number(step) / self.warmup_steps, 1.0)

    def get_config(self):
        return {"rate": self.rate, "warmup_steps": self.warmup_steps}


def _step_number(updates):
    return ops.cast(updates, "float32") + 1.0


def _refuse_unless_positive(**arguments):
    for name, value in arguments.items():
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"`{name}` must be positive. Received: {name}={value}.")
