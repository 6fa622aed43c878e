"""A small Transformer that learns to copy sentences of words, none of which comes twice."""

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.models import Transformer
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from pipelines.special_ids import BOS, EOS, PAD

WORDS = 60
TRAINED = (4, 12)
BATCH = 32
SIZES = {"num_layers": 2, "d_model": 64, "d_ff": 128, "num_heads": 4, "dropout": 0.0}


def sentences(random, count, shortest, longest):
    """Sources, padded to the longest, each closed by EOS; what the decoder reads; and labels."""
    source = np.full((count, longest + 1), PAD)
    for row in source:
        length = random.integers(shortest, longest + 1)
        row[:length] = EOS + 1 + random.permutation(WORDS)[:length]
        row[length] = EOS
    target = np.concatenate([np.full((count, 1), BOS), source[:, :-1]], axis=1)
    target[target == EOS] = PAD
    return source, target, source


def train(steps, seed=1, **choices):
    """A model that copies short sentences, of the sizes `SIZES` and of `choices`."""
    keras.utils.set_random_seed(seed)
    model = Transformer(vocabulary_size=EOS + 1 + WORDS, **{**SIZES, **choices})
    loss = LabelSmoothedCrossEntropy(0.0)
    peak = keras.optimizers.schedules.CosineDecay(
        0.0, steps, warmup_target=2e-3, warmup_steps=steps // 10
    )
    optimizer = keras.optimizers.Adam(peak, beta_2=0.98)
    optimizer.build(model.trainable_variables)
    ids = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[ids] * 3, autograph=False)
    def step(source, target, labels):
        with tf.GradientTape() as tape:
            weights = tf.cast(labels != PAD, tf.float32)
            value = loss(labels, model((source, target), training=True), sample_weight=weights)
        variables = model.trainable_variables
        gradients = tape.gradient(value, [variable.value for variable in variables])
        optimizer.apply(gradients, variables)
        return value

    random = np.random.default_rng(seed)
    for _ in range(steps):
        step(*(array.astype("int32") for array in sentences(random, BATCH, *TRAINED)))
    return model


def accuracy(model, shortest, longest, count=200):
    """Share of labels that are the likeliest, of sentences that were not trained on."""
    source, target, labels = sentences(np.random.default_rng(10), count, shortest, longest)
    likeliest = np.argmax(model((source, target)), axis=-1)
    return (likeliest == labels)[labels != PAD].mean()
