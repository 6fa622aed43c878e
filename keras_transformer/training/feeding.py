"""What `model.fit` trains on, whatever the backend (Vaswani et al. 2017, section 5.1)."""

import keras
import tensorflow as tf

from keras_transformer.training.ending import Ending
from keras_transformer.training.fit import Feed
from keras_transformer.training.objective import LIKELIHOOD, Objective
from keras_transformer.training.replicas import distribute
from keras_transformer.training.train_function import TrainFunction


def attach(
    model: keras.Model,
    strategy: tf.distribute.Strategy,
    batches,
    accumulate: int = 1,
    static_shapes: bool = False,
    jit_compile: bool = False,
    objective: Objective = LIKELIHOOD,
) -> Feed:
    """Make `model.fit` train on many batches a step.

    Args:
        model, strategy, accumulate, static_shapes, jit_compile, objective: see `TrainFunction`.
        batches: `TrainingBatches` of R times K parts, or an object with its
            methods `dataset` and `arrays`.

    Raises:
        ValueError: if another backend than TensorFlow, whose `fit` is Keras' own, is to distribute
            or accumulate.
    """
    if keras.backend.backend() == "tensorflow":
        function = TrainFunction(model, strategy, accumulate, static_shapes, jit_compile, objective)
        new_means = keras.callbacks.LambdaCallback(
            on_epoch_begin=lambda epoch, logs: function.start_epoch()
        )
        return Feed(
            lambda step: distribute(
                strategy, batches, step * strategy.num_replicas_in_sync * accumulate
            ),
            function.ending,
            (new_means,),
        )
    if strategy.num_replicas_in_sync > 1 or accumulate > 1:
        raise ValueError(
            f"KERAS_BACKEND={keras.backend.backend()} trains with --distribution=one and "
            "--accumulate=1. Received: "
            f"{strategy.num_replicas_in_sync} replicas, accumulate={accumulate}. Leave them out, "
            "or use TensorFlow."
        )
    if objective != LIKELIHOOD:
        raise ValueError(
            f"KERAS_BACKEND={keras.backend.backend()} trains without --r_drop and "
            "--scheduled_sampling. Leave them out, or use TensorFlow."
        )
    return Feed(batches.arrays, Ending(model))
