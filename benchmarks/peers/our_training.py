"""How `keras_transformer.train` trains, for the benchmarks: the only place to adapt when that
changes.
"""

import io
import math

import keras
import numpy as np
from rich.console import Console

from keras_transformer import startup
from keras_transformer.models import Hyperparameters, Transformer
from keras_transformer.training import fit
from keras_transformer.training.ending import StopAtLimit, StopOnDivergence, StopOnSignal, Stopwatch
from keras_transformer.training.loss import LabelSmoothedCrossEntropy
from keras_transformer.training.optimizer import optimizer
from keras_transformer.training.progress import ProgressBar
from keras_transformer.training.replicas import make_strategy
from keras_transformer.training.schedule import TransformerSchedule
from pipelines import corpora
from pipelines.batches import batching, texts
from pipelines.batches.texts import TokenizedPairs
from pipelines.corpora.record_files import Records
from pipelines.vocabularies.token_ids import TokenIds

SEED = 1
PREFIXES = ("train", "val", "test_2016_flickr")
LAST_STEP = 10**9


def read_text(data_dir, split="train"):
    """The pairs of Multi30k En-De: split "train", "valid" or "test"."""
    corpus = corpora.load(
        "text_files",
        source_language="en",
        target_language="de",
        data_dir=data_dir,
        prefixes=PREFIXES,
    )
    return getattr(corpus, split)


def tokenize(text, vocabulary):
    """Text to what `batches` takes."""
    return texts.tokenize_pairs(text, vocabulary, max_length=256)


def read_records(folder):
    """What `pipelines.prepare.preparation` left to what `batches` takes."""
    return Records(folder).pairs(max_length=256)


def as_pairs(sources, targets):
    """Rectangles of ids without padding, (pairs, length), to what `batches` takes."""
    return TokenizedPairs(
        *(
            TokenIds.of_lengths(ids.reshape(-1), np.full(len(ids), ids.shape[1]))
            for ids in (sources, targets)
        )
    )


def batches(pairs, batch_tokens):
    """The endless stream of training batches, triples ((source, target_input), target_output,
    weights).
    """
    return batching.training_batches(pairs.examples(), batch_tokens, SEED)


def compiled(
    size, vocabulary_size, precision, dropout, label_smoothing, seed=SEED, choose=lambda model: None
):
    """A model ready for `train`, of which `choose` decides what learns."""
    startup.start_tensorflow()
    keras.utils.set_random_seed(seed)
    hyperparameters = Hyperparameters(
        vocabulary_size=vocabulary_size, dropout=dropout, label_smoothing=label_smoothing, **size
    )
    model = Transformer(hyperparameters, dtype=fit.dtype_policy(precision))
    choose(model)
    fit.compile_model(
        model,
        optimizer(TransformerSchedule(hyperparameters.d_model)),
        LabelSmoothedCrossEntropy(label_smoothing),
    )
    return model


def train(model, pairs, batch_tokens, watcher, last_step=LAST_STEP):
    """`model.fit` with the callbacks of a run that neither saves nor validates.

    Args:
        model: from `compiled`.
        pairs: from `tokenize`, `read_records` or `as_pairs`.
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
