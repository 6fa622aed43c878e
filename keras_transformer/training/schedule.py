"""The learning rate over time (Vaswani et al. 2017, section 5.3, eq. 3)."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("keras_transformer")
class TransformerSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then decay with the inverse square root of the step.

        lrate = scale * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5)

    The peak, scale * (d_model * warmup_steps)^-0.5, is reached at step = warmup_steps. Steps count from 1, as in the paper:
    Keras hands over the number of updates already made, so the first update uses step 1.

    Args:
        d_model: width of the model.
        warmup_steps: steps of linear growth; the paper's 4000.
        scale: factor on the whole curve; the paper's 1.

    Raises:
        ValueError: if an argument is not positive.
    """

    def __init__(self, d_model, warmup_steps=4000, scale=1.0):
        super().__init__()
        for name, value in (("d_model", d_model), ("warmup_steps", warmup_steps), ("scale", scale)):
            if value <= 0:
                raise ValueError(f"`{name}` must be positive. Received: {name}={value}.")
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.scale = scale

    def __call__(self, step):
        step = ops.cast(step, "float32") + 1.0
        return self.scale * self.d_model**-0.5 * ops.minimum(step**-0.5, step * self.warmup_steps**-1.5)

    def get_config(self):
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps, "scale": self.scale}
