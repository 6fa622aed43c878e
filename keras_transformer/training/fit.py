"""How a run trains (Vaswani et al. 2017, section 5): optimizer and loss set up, then `model.fit` from where it stopped."""

import math

import keras

from keras_transformer.training import checkpoint
from keras_transformer.training.callbacks import StopAtLimit, StopOnDivergence, Stopwatch
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import TargetTokens, TokenAccuracy


def compile_model(model, schedule, label_smoothing):
    """Give a model the paper's Adam (section 5.3: beta_1 0.9, beta_2 0.98, epsilon 1e-9) and loss (section 5.4)."""
    model.compile(
        optimizer=keras.optimizers.Adam(schedule, beta_1=0.9, beta_2=0.98, epsilon=1e-9),
        loss=LabelSmoothedCrossEntropy(label_smoothing),
        metrics=[TokenAccuracy(), TargetTokens()],
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)


def resume(model, folder):
    """Set a compiled model to the newest checkpoint of a folder that can be read, if there is one.

    Returns:
        The step to go on from, and the run's `Stopwatch`.
    """
    newest = checkpoint.newest(folder)
    progress = checkpoint.restore(newest, model) if newest else {"step": 0, "seconds": 0.0}
    return progress["step"], Stopwatch(progress["seconds"])


def fit(model, batches_from, steps_per_epoch, last_step, stopwatch, minutes, callbacks):
    """Train to the first limit that is met.

    An epoch that was interrupted is finished first, in a call of `model.fit` of its own; then all others.

    Args:
        model: compiled, and set by `resume`.
        batches_from: takes a step, gives the endless stream of batches from that step on.
        steps_per_epoch: batches.
        last_step: most steps.
        stopwatch: from `resume`.
        minutes: most minutes, those before an interruption among them.
        callbacks: Keras callbacks.
    """
    watchers = [StopOnDivergence(), StopAtLimit(stopwatch, minutes, last_step), *callbacks]
    while (step := int(model.optimizer.iterations)) < last_step and stopwatch.seconds < minutes * 60:
        epoch, done = divmod(step, steps_per_epoch)
        model.fit(
            batches_from(step),
            initial_epoch=epoch,
            epochs=epoch + 1 if done else math.ceil(last_step / steps_per_epoch),
            steps_per_epoch=steps_per_epoch - done,
            callbacks=watchers,
            shuffle=False,
            verbose=0,
        )
