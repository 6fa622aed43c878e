"""Trains a fixed model on fixed batches with the backend of KERAS_BACKEND, and prints the loss of
each step as JSON.

Arguments: a file of weights, written where it is missing; whether label smoothing is on.
"""

import json
import pathlib
import sys

import keras
import numpy as np

from keras_transformer.models import Transformer
from keras_transformer.training import checkpoint, fit
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.optimizer import optimizer
from keras_transformer.training.replicas import make_strategy
from keras_transformer.training.schedule import TransformerSchedule
from keras_transformer.training.train_function import attach
from pipelines.batching import training_batches
from pipelines.pairs import TokenizedPairs
from pipelines.token_ids import TokenIds

STEPS = 20


class Losses(keras.callbacks.Callback):
    """The loss of each step; an epoch is one step."""

    def on_train_begin(self, logs=None):
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(float(logs["loss"]))


def side(random):
    lengths = random.integers(2, 20, 200)
    return TokenIds.of_lengths(random.integers(4, 50, lengths.sum()).astype(np.uint16), lengths)


def main(weights, label_smoothing):
    random = np.random.default_rng(0)
    batches = training_batches(
        TokenizedPairs(side(random), side(random)).examples(),
        batch_tokens=100,
        seed=1,
        most_padding=0.99,
    )
    model = Transformer(
        vocabulary_size=50, num_layers=1, d_model=16, d_ff=32, num_heads=2, dropout=0.0
    )
    fit.compile_model(
        model,
        optimizer(TransformerSchedule(16, warmup_steps=10), clip_norm=1.0),
        LabelSmoothedCrossEntropy(label_smoothing),
    )
    if pathlib.Path(weights).exists():
        checkpoint.load_weights(weights, model)
    else:
        checkpoint.save(weights, model, {})
    losses = Losses()
    fit.fit(
        model,
        attach(model, make_strategy("one"), batches, lambda step: step),
        1,
        STEPS,
        [losses],
    )
    print(json.dumps(losses.losses))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
