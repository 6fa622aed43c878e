"""Our training, by `model.fit` as `keras_transformer.train` calls it, and our SavedModel, taking
turns: the only place to adapt when `train` changes.
"""

import io
import math

import keras
import numpy as np
import sentencepiece
from rich.console import Console

from benchmarks.peers.batches import DROPOUT, LABEL_SMOOTHING, Batches
from benchmarks.peers.translating import in_batches, serve
from benchmarks.peers.turns import Clock, Parent
from keras_transformer.models import Hyperparameters, Transformer
from keras_transformer.startup import spread_over_cores, start_tensorflow
from keras_transformer.training import fit
from keras_transformer.training.ending import StopAtLimit, StopOnDivergence, StopOnSignal, Stopwatch
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.optimizer import TransformerSchedule, optimizer
from keras_transformer.training.progress import ProgressBar
from keras_transformer.training.replicas import make_strategy
from pipelines import corpora
from pipelines.batches import batching, texts
from pipelines.vocabularies.token_ids import TokenIds
from pipelines.vocabularies.vocabulary import Vocabulary

SEED = 1
PREFIXES = ("train", "val", "test_2016_flickr")
LAST_STEP = 10**9
# With forced lengths every sentence costs the same, and batches of equal size leave no core idle.
# 64 is our fastest size.
SENTENCES = 64


def multi30k(data_dir):
    """The corpus En-De, with `train` and `test`."""
    languages = {"source_language": "en", "target_language": "de"}
    return corpora.load("text_files", **languages, data_dir=data_dir, prefixes=PREFIXES)


def tokenize(text, vocabulary):
    """Text to what `batches` takes."""
    return texts.tokenize_pairs(text, vocabulary, max_length=256)


def as_pairs(sources, targets):
    """Rectangles of ids without padding, (pairs, length), to what `batches` takes."""
    sides = (
        TokenIds.of_lengths(ids.reshape(-1), np.full(len(ids), ids.shape[1]))
        for ids in (sources, targets)
    )
    return texts.TokenizedPairs(*sides)


def batches(pairs, batch_tokens):
    """The endless stream of training batches, triples ((source, target_input), target_output,
    weights).
    """
    return batching.training_batches(pairs.examples(), batch_tokens, SEED)


def compiled(size, vocabulary_size, precision):
    """A model ready for `fit_model`."""
    start_tensorflow()
    keras.utils.set_random_seed(SEED)
    regularized = {"dropout": DROPOUT, "label_smoothing": LABEL_SMOOTHING}
    hyperparameters = Hyperparameters(vocabulary_size, **regularized, **size)
    model = Transformer(hyperparameters, dtype=fit.dtype_policy(precision))
    schedule = TransformerSchedule(hyperparameters.d_model)
    fit.compile_model(model, optimizer(schedule), LabelSmoothedCrossEntropy(LABEL_SMOOTHING))
    return model


def fit_model(model, pairs, batch_tokens, watcher, last_step=LAST_STEP):
    """`model.fit` with the callbacks of a run that neither saves nor validates.

    Args:
        model: from `compiled`.
        pairs: from `tokenize` or `as_pairs`.
        batch_tokens: tokens of an update on either side.
        watcher: one more callback, the last.
        last_step: most steps.
    """
    stream = batches(pairs, batch_tokens)
    feed = fit.attach(model, make_strategy("one"), stream)
    limit = StopAtLimit(feed.ending, Stopwatch(), math.inf, last_step)
    bar = ProgressBar(last_step, limit.stopwatch, math.inf, Console(file=io.StringIO()))
    watchers = [StopOnDivergence(), limit, StopOnSignal(feed.ending), bar, watcher]
    fit.fit(model, feed, stream.updates_per_epoch, last_step, watchers)


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


def train(parent):
    task = parent.task
    model = compiled(task["size"], task["vocabulary_size"], task["precision"])
    text = multi30k(task["data_dir"]).train
    pairs = tokenize(text, Vocabulary.load(task["vocabulary"]))
    (source, _), labels, _ = next(iter(batches(pairs, task["batch_tokens"]).arrays()))
    for ours, of_all in zip((source, labels), Batches(task["batches"])[0], strict=True):
        if not np.array_equal(ours, of_all):
            raise RuntimeError("The batches are not those that the other systems train on.")
    fit_model(model, pairs, task["batch_tokens"], TakeTurns(parent))


def load(task):
    from keras_transformer.inference.translator import Translator

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
