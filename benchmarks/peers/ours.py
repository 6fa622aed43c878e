"""Our training, by `model.fit` as `keras_transformer.train` calls it or as the bare compiled step,
and our SavedModel, taking turns.
"""

import keras
import numpy as np
import sentencepiece
import tensorflow as tf

from benchmarks.peers import our_training
from benchmarks.peers.batches import DROPOUT, LABEL_SMOOTHING, Batches
from benchmarks.peers.translating import in_batches, serve
from benchmarks.peers.turns import Clock, Parent
from keras_transformer.inference.translator import Translator
from keras_transformer.startup import spread_over_cores, start_tensorflow
from pipelines.special_ids import PAD
from pipelines.vocabularies.vocabulary import Vocabulary

# With forced lengths every sentence costs the same, and batches of equal size leave no core idle.
# 64 is our fastest size.
SENTENCES = 64


class TakeTurns(keras.callbacks.Callback):
    """Lets `fit` go so many steps, answers what they took, and holds it until the next order."""

    def __init__(self, parent):
        super().__init__()
        self.parent = parent
        self.orders = parent.orders()

    def on_train_begin(self, logs=None):
        self.parent.say(ready=True)
        self.wait()

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if not self.left:
            self.parent.say(**self.clock.read())
            self.wait()

    def wait(self):
        self.left = next(self.orders, None)
        if self.left is None:
            raise SystemExit
        self.clock = Clock()


def train_by_fit(parent, model):
    task = parent.task
    pairs = our_training.tokenize(
        our_training.read_text(task["data_dir"]), Vocabulary.load(task["vocabulary"])
    )
    stream = our_training.batches(pairs, task["batch_tokens"])
    (source, _), labels, _ = next(iter(stream.arrays()))
    for ours, of_all in zip((source, labels), Batches(task["batches"])[0], strict=True):
        if not np.array_equal(ours, of_all):
            raise RuntimeError(
                "The stream of batches is not the one that the other systems train on."
            )
    our_training.train(model, pairs, task["batch_tokens"], TakeTurns(parent))


def bare_step(model):
    """Forward pass, loss, gradient, update: one compiled function of a batch and nothing else."""
    ids = tf.TensorSpec((None, None), tf.int32)

    @tf.function(input_signature=[ids, ids, ids])
    def step(source, target, labels):
        with tf.GradientTape() as tape:
            weights = tf.cast(labels != PAD, tf.float32)
            loss = model.loss(labels, model((source, target), training=True), weights)
        variables = model.trainable_variables
        model.optimizer.apply(tape.gradient(loss, variables), variables)
        return loss

    return step


def train(parent):
    task = parent.task
    model = our_training.compiled(
        task["size"], task["vocabulary_size"], task["precision"], DROPOUT, LABEL_SMOOTHING
    )
    if task["by"] == "fit":
        train_by_fit(parent, model)
    else:
        batches = Batches(task["batches"])
        step = bare_step(model)
        parent.serve(lambda number: float(step(*map(tf.constant, batches.shifted(number)))))


def load(task):
    start_tensorflow()
    at_once = spread_over_cores() if task["spread"] else 1
    translator = Translator.load(task["model"])
    if not task["forced_length"]:
        return lambda lines: (translator.translate(lines, batches_at_once=at_once), None)
    sentences = SENTENCES if task["spread"] else task["batch_size"]
    pieces = sentencepiece.SentencePieceProcessor(model_file=task["source_vocabulary"])

    def decode(lines):
        return translator.translate(lines, batch_tokens=10**9)

    return lambda lines: (
        in_batches(decode, lines, list(map(len, pieces.encode(lines))), sentences, at_once),
        None,
    )


if __name__ == "__main__":
    parent = Parent()
    train(parent) if parent.task["does"] == "train" else serve(parent, load)
