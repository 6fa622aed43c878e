"""Trains a small model on batches of different lengths, spread over the replicas of a strategy.

Arguments: a folder; a distribution, where "mirrored" splits this processor into two logical ones;
and numbers of batches per replica and step. Each number leaves
`<distribution>-<number>-<process>.npz` in the folder: the weights after 20 steps, their moving
averages, the reports of each step, and what dropout leaves of ones on each replica of the process.
"""

import json
import os
import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf
from small_model import Reports, small_model
from token_lists import random_sentences

from keras_transformer.models import Transformer
from keras_transformer.training import fit
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.optimizer import averaged_weights, optimizer
from keras_transformer.training.replicas import distribute, make_strategy
from keras_transformer.training.train_function import TrainFunction
from pipelines.batches.batching import training_batches
from pipelines.batches.texts import TokenizedPairs

STEPS = 20


def train(replicas, accumulate):
    keras.utils.set_random_seed(1)
    with replicas.scope():
        model = Transformer(
            vocabulary_size=50, num_layers=1, d_model=16, d_ff=32, num_heads=2, dropout=0.0
        )
        fit.compile_model(
            model,
            optimizer(0.003, clip_norm=0.1, ema=0.9),
            LabelSmoothedCrossEntropy(0.1),
        )
    function = TrainFunction(model, replicas, accumulate)
    reports = Reports()
    random = np.random.default_rng(0)
    examples = TokenizedPairs(*(random_sentences(random, 500, 29) for _ in range(2))).examples()
    parts = replicas.num_replicas_in_sync * accumulate
    batches = training_batches(examples, 400, seed=1, parts=parts)
    data = distribute(replicas, batches, 0)
    fit.fit(model, fit.Feed(lambda step: data, function.ending), STEPS, STEPS, [reports])
    return {
        **{f"weight {number}": array for number, array in enumerate(model.get_weights())},
        **{
            f"average {number}": array
            for number, array in enumerate(averaged_weights(model).values())
        },
        "reports": np.array(
            [[report[name] for name in ("loss", "accuracy", "labels")] for report in reports.steps]
        ),
        "dropped": dropped(replicas),
    }


def dropped(replicas):
    """Zeros and twos, (replicas of this process, 1000)."""
    keras.utils.set_random_seed(1)
    with replicas.scope():
        model = small_model(dropout=0.5)
        fit.compile_model(model, optimizer(0.003), LabelSmoothedCrossEntropy(0.1))
    TrainFunction(model, replicas)
    layer = model.get_layer("dropout")
    draw = tf.function(lambda: replicas.run(lambda: layer(tf.ones([1000]), training=True)))
    return np.array(replicas.experimental_local_results(draw()))


def main(folder, distribution, *numbers):
    if distribution == "mirrored":
        [processor] = tf.config.list_physical_devices("CPU")
        tf.config.set_logical_device_configuration(
            processor, [tf.config.LogicalDeviceConfiguration()] * 2
        )
    replicas = make_strategy(distribution)
    own = json.loads(os.environ.get("TF_CONFIG", "{}"))
    process = own["task"]["index"] if own else 0
    for number in numbers:
        path = pathlib.Path(folder) / f"{distribution}-{number}-{process}.npz"
        np.savez(path, **train(replicas, int(number)))


if __name__ == "__main__":
    main(*sys.argv[1:])
