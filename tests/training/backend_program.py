"""Trains a fixed model on fixed batches with the backend of KERAS_BACKEND.

As a program it prints an object of JSON: `losses` of each step, and `dropped`. Arguments: a file of
weights, written where it is missing; how much labels are smoothed.
"""

import json
import pathlib
import sys

import keras
import numpy as np
from small_model import Reports
from token_lists import random_sentences

from keras_transformer.layers import Dropout
from keras_transformer.models import Transformer
from keras_transformer.training import checkpoint, fit
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.optimizer import TransformerSchedule, optimizer
from keras_transformer.training.replicas import make_strategy
from pipelines.batches.batching import training_batches
from pipelines.batches.texts import TokenizedPairs

STEPS = 10


def data():
    """Batches of one shape: JAX compiles a program for each."""
    random = np.random.default_rng(0)
    pairs = TokenizedPairs(*(random_sentences(random, 200, 7) for _ in range(2)))
    return training_batches(pairs.examples(), batch_tokens=100, seed=1, most_padding=0.99)


def transformer(weights):
    """The model, with the weights of the file if there is one."""
    sizes = {"num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2}
    model = Transformer(vocabulary_size=50, dropout=0.0, **sizes)
    if pathlib.Path(weights).exists():
        checkpoint.load_weights(weights, model)
    return model


def train(weights, label_smoothing):
    """The loss of each step."""
    model = transformer(weights)
    fit.compile_model(
        model,
        optimizer(TransformerSchedule(16, warmup_steps=10), clip_norm=1.0),
        LabelSmoothedCrossEntropy(label_smoothing),
    )
    if not pathlib.Path(weights).exists():
        checkpoint.save(weights, model, {})
    reports = Reports()
    feed = fit.attach(model, make_strategy("one"), data())
    # An epoch is one step.
    fit.fit(model, feed, 1, STEPS, [reports])
    return [float(report["loss"]) for report in reports.steps]


def dropped():
    """Dropout of ones: the share of zeros, the mean, and whether the next call differs."""
    keras.utils.set_random_seed(1)
    layer = Dropout(0.25)
    signal = np.ones((64, 128, 64), "float32")
    first, second = (np.asarray(layer(signal, training=True)) for _ in range(2))
    return [float((first == 0).mean()), float(first.mean()), bool((first != second).any())]


if __name__ == "__main__":
    losses = train(sys.argv[1], float(sys.argv[2]))
    print(json.dumps({"losses": losses, "dropped": dropped()}))
