"""Trains a fixed model for 20 steps on batches of different lengths, and writes its weights and the loss of each step to a file.

Arguments as JSON: distribution, accumulate, output; and `mean_of_means`, the mistake of dividing each replica's loss by its own tokens.
"""

import json
import sys

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.models import Transformer
from keras_transformer.training import fit, strategy
from keras_transformer.training.optimizer import optimizer
from pipelines.batching import training_batches
from pipelines.token_ids import TokenIds, TokenizedPairs

STEPS = 20


def side(random):
    lengths = random.integers(2, 30, 500)
    return TokenIds.of_lengths(random.integers(4, 50, lengths.sum()).astype(np.uint16), lengths)


class Losses(keras.callbacks.Callback):
    """The loss of each step; an epoch is one step."""

    def on_train_begin(self, logs=None):
        self.losses = []

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(logs["loss"])


class MeanOfMeans:
    """A loss whose sum is divided by the replica's own tokens, and so by `tokens` once more than it should."""

    def __init__(self, loss):
        self.loss = loss

    def total(self, labels, logits):
        tokens = tf.math.count_nonzero(labels, dtype=tf.float32)
        everywhere = tf.distribute.get_replica_context().all_reduce("SUM", tokens)
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        return self.loss.total(labels, logits) / tokens * everywhere / replicas


def main(distribution, accumulate, output, mean_of_means=False):
    if distribution == "mirrored":
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
    replicas = strategy.make_strategy(distribution)
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(0)
    batches = training_batches(TokenizedPairs(side(random), side(random)), batch_tokens=200, seed=1)
    with replicas.scope():
        model = Transformer(vocabulary_size=50, num_layers=1, d_model=16, d_ff=32, num_heads=2, dropout=0.0)
        fit.compile_model(model, optimizer(1e-2, clip_norm=0.1, ema=0.9), label_smoothing=0.1)
    if mean_of_means:
        model.loss = MeanOfMeans(model.loss)
    losses, batches_a_step = Losses(), replicas.num_replicas_in_sync * accumulate
    data_from = strategy.attach(model, replicas, batches, lambda step: step * batches_a_step, accumulate)
    fit.fit(model, data_from, 1, STEPS, [losses])
    if strategy.is_chief(replicas):
        np.savez(output, *model.get_weights(), losses=losses.losses)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
