"""How a run trains (Vaswani et al. 2017, section 5): a compiled model, then `model.fit` from where
the run stopped.
"""

import dataclasses
import math
import pathlib
from collections.abc import Callable, Sequence

import keras

from keras_transformer.training import checkpoint
from keras_transformer.training.ending import Ending
from keras_transformer.training.label_metrics import LabelAccuracy, LabelCount
from keras_transformer.training.limits import Stopwatch
from keras_transformer.training.watcher import in_order


@dataclasses.dataclass(frozen=True)
class Feed:
    """What `fit` trains a model on; `feeding.attach` makes it.

    Attributes:
        data_from: takes a step, gives the data that `model.fit` continues with.
        ending: how the run ends before its last step.
        callbacks: Keras callbacks that come before all others.
    """

    data_from: Callable
    ending: Ending
    callbacks: tuple = ()


def compile_model(
    model: keras.Model, optimizer: keras.optimizers.Optimizer, loss: keras.losses.Loss
) -> None:
    """Give a model its optimizer, built, and its loss.

    Args:
        model: gives logits (B, T, V), or (B, V).
        optimizer: from `optimizer.optimizer`.
        loss: its `call` gives float32 (B, T), or (B,): a loss for each label.
    """
    if keras.backend.backend() == "tensorflow":
        # `TrainFunction` counts by itself, over all replicas.
        model.compile(optimizer, loss, jit_compile=False)
    else:
        model.compile(optimizer, loss, weighted_metrics=[LabelAccuracy(), LabelCount()])
    model.optimizer.build(model.trainable_variables)


@dataclasses.dataclass(frozen=True)
class Progress:
    """Where a run resumes.

    Attributes:
        step: updates made.
        stopwatch: the run's `Stopwatch`.
    """

    step: int
    stopwatch: Stopwatch


def resume(model: keras.Model, folder: pathlib.Path) -> Progress:
    """Set a compiled model to the newest checkpoint of a folder that can be read, if there is one.

    Args:
        model: from `compile_model`.
        folder: where the checkpoints lie.
    """
    newest = checkpoint.newest(folder)
    progress = checkpoint.restore(newest, model) if newest else {"step": 0, "seconds": 0.0}
    return Progress(progress["step"], Stopwatch(progress["seconds"]))


def fit(
    model: keras.Model,
    feed: Feed,
    steps_per_epoch: int,
    last_step: int,
    watchers: Sequence[keras.callbacks.Callback],
) -> None:
    """Train until a callback ends it, or the last step.

    An epoch that was interrupted is finished first, in a call of `model.fit` of its own; then all
    others.

    Args:
        model: compiled, and set by `resume`.
        feed: the `Feed`.
        steps_per_epoch: steps.
        last_step: most steps.
        watchers: callbacks, in any order: see `watcher.in_order`.
    """
    model.stop_training = False
    while (step := checkpoint.step_of(model)) < last_step and not model.stop_training:
        epoch, done = divmod(step, steps_per_epoch)
        model.fit(
            feed.data_from(step),
            initial_epoch=epoch,
            epochs=epoch + 1 if done else math.ceil(last_step / steps_per_epoch),
            steps_per_epoch=steps_per_epoch - done,
            callbacks=[*feed.callbacks, *in_order(watchers)],
            shuffle=False,
            verbose=0,
        )
