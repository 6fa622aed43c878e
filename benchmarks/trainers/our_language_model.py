"""Our `LanguageModel`, taking turns: forward pass, loss, gradient and update, compiled, in a
process that keeps its memory as our commands do.
"""

import keras
import numpy as np
import tensorflow as tf

from benchmarks.turns import Parent
from keras_transformer.models import LanguageModel
from keras_transformer.startup import start_tensorflow
from keras_transformer.training.loss import LabelSmoothedCrossEntropy


def main():
    start_tensorflow()
    parent = Parent()
    task = parent.task
    variants = {"norm": "pre", "activation": "gelu", "positions": "learned"}
    model = LanguageModel(**task["size"], **variants, attention_bias=True)
    loss_of = LabelSmoothedCrossEntropy(0.0)
    optimizer = keras.optimizers.Adam(1e-4)
    optimizer.build(model.trainable_variables)
    ids = tf.TensorSpec((None, None), tf.int32)

    @tf.function(input_signature=[ids, ids])
    def step(read, text):
        with tf.GradientTape() as tape:
            weights = tf.ones(tf.shape(text))
            loss = loss_of(text, model(read, training=True), weights)
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    shape = (task["batch"], task["length"] + 1)

    def train(number):
        drawn = np.random.default_rng(number).integers(4, task["size"]["vocabulary_size"], shape)
        text = tf.constant(drawn, tf.int32)
        float(step(text[:, :-1], text[:, 1:]))

    parent.serve(train)


if __name__ == "__main__":
    main()
