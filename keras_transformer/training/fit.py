"""How a run trains (Vaswani et al. 2017, section 5): model and optimizer set up, then `model.fit`
from where it stopped.
"""

import math

import keras

from keras_transformer.training import checkpoint
from keras_transformer.training.callbacks import Stopwatch
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.metrics import TargetTokens, TokenAccuracy


def compile_model(model, optimizer, label_smoothing):
    """Give a model its optimizer and the loss of section 5.4."""
    loss = LabelSmoothedCrossEntropy(label_smoothing)
    if keras.backend.backend() == "tensorflow":
        # `strategy.TrainFunction` counts by itself, over all replicas.
        model.compile(optimizer, loss, jit_compile=False)
    else:
        model.compile(optimizer, loss, metrics=[TokenAccuracy(), TargetTokens()])
    model.optimizer.build(model.trainable_variables)


def resume(model, folder, log=print):
    """Set a compiled model to the newest checkpoint of a folder that can be read, if there is one.

    Returns:
        How many steps were made and how many batches were seen, and the run's `Stopwatch`.
    """
    newest = checkpoint.newest(folder, log)
    progress = (
        checkpoint.restore(newest, model) if newest else {"step": 0, "batches": 0, "seconds": 0.0}
    )
    return progress["step"], progress["batches"], Stopwatch(progress["seconds"])


def fit(model, data_from, steps_per_epoch, last_step, callbacks):
    """Train until a callback ends it, or the last step.

    An epoch that was interrupted is finished first, in a call of `model.fit` of its own; then all
    others.

    Args:
        model: compiled, and set by `resume`.
        data_from: takes a step, gives the endless stream of data from that step on.
        steps_per_epoch: steps.
        last_step: most steps.
        callbacks: Keras callbacks.
    """
    if keras.backend.backend() == "tensorflow":
        new_means = keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: model.train_function.start_epoch()
        )
        callbacks = [new_means, *callbacks]
    while (step := checkpoint.step_of(model)) < last_step and not getattr(
        model, "stop_training", False
    ):
        epoch, done = divmod(step, steps_per_epoch)
        model.fit(
            data_from(step),
            initial_epoch=epoch,
            epochs=epoch + 1 if done else math.ceil(last_step / steps_per_epoch),
            steps_per_epoch=steps_per_epoch - done,
            callbacks=callbacks,
            shuffle=False,
            verbose=0,
        )
