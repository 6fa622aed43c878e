"""A task that the package knows nothing of: is a piece of the alphabet reversed?

`python reversed_strings.py train --model_dir=...` trains it, `... export ...` exports it.
"""

import random
import string
import sys

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from keras_transformer import export, train
from keras_transformer.saved_models.served_module import ServedModule
from keras_transformer.tasks.task import Score, Task
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from pipelines.batches.examples import Examples
from pipelines.vocabularies.token_ids import TokenIds

CLASSES = ("in order", "reversed")
CHARACTERS = 128
WIDTH = 16


def strings(seed, count):
    """Strings such as "efgh", and of half of them the reverse; which of the two each is."""
    draw = random.Random(seed)
    texts = []
    for number in range(count):
        start = draw.randrange(22)
        text = string.ascii_lowercase[start : start + draw.randint(3, 9)]
        texts.append(text[::-1] if number % 2 else text)
    return texts, np.arange(count, dtype=np.int32) % 2


def letters(texts):
    """Strings to `TokenIds`, a number for each character."""
    flat = np.frombuffer("".join(texts).encode(), np.uint8).astype(np.uint16)
    return TokenIds.of_lengths(flat, [len(text) for text in texts])


def classifier(dtype, dropout):
    """Looks at each two neighbours, and takes the strongest sign of either class."""
    ids = keras.Input((None,), dtype="int32", name="letters")
    hot = ops.one_hot(ids, CHARACTERS)
    neighbours = ops.concatenate([hot[:, :-1], hot[:, 1:]], axis=-1)
    x = keras.layers.Dense(WIDTH, "relu", name="neighbours", dtype=dtype)(neighbours)
    x = keras.layers.Dropout(dropout, name="dropout", dtype=dtype)(ops.max(x, axis=1))
    return keras.Model(ids, keras.layers.Dense(2, name="classes", dtype=dtype)(x))


class Classifier(ServedModule):
    """Letters as numbers (B, L) to classes (B,) and their probabilities (B, 2)."""

    summary = "It tells whether a piece of the alphabet is reversed."

    def __init__(self, model):
        super().__init__()
        self.weights = [variable.value for variable in model.weights]
        ids = tf.TensorSpec([None, None], tf.int32, name="letters")
        self.classify = tf.function(
            lambda letters: self._answers(model(letters, training=False)), input_signature=[ids]
        )
        temperature = tf.TensorSpec([None], tf.float32, name="temperature")

        def soften(letters, temperature):
            return self._answers(model(letters, training=False) / temperature[:, None])

        # What Python has as a default, a SavedModel has as its signature's.
        soften.__defaults__ = (tf.constant([1.0]),)
        self.soften = tf.function(soften, input_signature=[ids, temperature])

    @classmethod
    def build(cls, description, dtype):
        return classifier(dtype, description["hyperparameters"]["dropout"])

    @classmethod
    def of_model(cls, model, folder, values):
        return cls(model)

    @staticmethod
    def _answers(logits):
        return {
            "class": tf.argmax(logits, axis=-1, output_type=tf.int32),
            "probabilities": tf.nn.softmax(tf.cast(logits, tf.float32)),
        }

    def functions(self):
        return {"serving_default": self.classify, "soften": self.soften}

    def golden_inputs(self, examples):
        texts = examples or ["abc"]
        return [{"letters": np.array([*text.encode()], np.int32)} for text in texts]

    def facts(self):
        return {"classes": list(CLASSES)}


class ReversedStrings(Task):
    name = "reversed_strings"
    labels = "strings"
    width = WIDTH
    module_class = Classifier

    def description(self):
        return {"hyperparameters": {"width": WIDTH, "dropout": 0.3}}

    def introduce(self):
        print("strings, half of them reversed")

    def examples(self, split):
        texts, classes = strings(1, 400) if split == "train" else strings(2, 40)
        return Examples({"letters": letters(texts)}, {"class": classes}, self.to_batch)

    @staticmethod
    def to_batch(columns):
        """Inputs (B, L), labels (B,), and weights: every class counts, 0 too."""
        classes = tf.cast(columns["class"], tf.int32)
        return columns["letters"], classes, tf.ones(tf.shape(classes))

    def loss(self):
        return LabelSmoothedCrossEntropy(0.0)

    def score(self, module):
        texts, classes = strings(3, 40)
        answers = [
            module.classify(tf.constant([[*text.encode()]]))["class"].numpy()[0] for text in texts
        ]
        accuracy = float(np.mean(answers == classes))
        return Score({"accuracy": accuracy}, [f"accuracy {accuracy}"], texts[:4])


if __name__ == "__main__":
    command = {"train": train.run, "export": export.run}[sys.argv.pop(1)]
    command(ReversedStrings)
