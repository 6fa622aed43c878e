"""Learning rates over the steps of training, as numbers (Vaswani et al. 2017, section 5.3)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from keras import ops

from keras_transformer.training.schedule import schedule
from keras_transformer.visualization.line_chart import Panel

POINTS = 150


def learning_rates(recipes: Mapping[str, Mapping[str, Any]], steps: int | None = None) -> Panel:
    """The learning rate over the steps of training (section 5.3).

    Args:
        recipes: {name: arguments of `training.schedule.schedule`}.
        steps: the last step; None: ten times the longest warm-up.
    """
    steps = steps or 10 * max(recipe["warmup_steps"] for recipe in recipes.values())
    peaks = {recipe["warmup_steps"] for recipe in recipes.values()}
    # All curves have corners where a warm-up ends.
    regular = {int(step) for step in np.linspace(1, steps, POINTS)}
    at = sorted(regular | {peak for peak in peaks if peak <= steps})
    series = {}
    for name, recipe in recipes.items():
        rate = schedule(**recipe)
        # Keras counts the updates that were made before.
        series[name] = (at, [float(ops.convert_to_numpy(rate(step - 1))) for step in at])
    return Panel("learning rate", "step", series)
