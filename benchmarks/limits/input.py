"""How fast batches are made when nothing trains on them: from lines of text, from ids in memory,
and from records on disk.

python -m benchmarks.limits.input --data_dir=multi30k --batch_tokens=1280,2048
"""

import itertools
import time

import numpy as np
from absl import app, flags

from benchmarks.peers import our_training
from benchmarks.tables import print_table
from pipelines.vocabularies.vocabulary import learn

EPOCHS = 5


def of_one_epoch(make_pairs, batch_tokens):
    """Source and target tokens a second, padding left out: of making pairs and one epoch's batches
    together, and of making batches alone, the median of some epochs.

    The first batch is not counted: until it comes, a graph is traced and optimized once a run.
    """
    began = time.perf_counter()
    pairs = make_pairs()
    paired = time.perf_counter() - began
    stream = our_training.batches(pairs, batch_tokens)
    iterator = stream.dataset().as_numpy_iterator()
    next(iterator)
    epochs = [_epoch(iterator, stream.updates_per_epoch) for _ in range(EPOCHS)]
    tokens, seconds = epochs[0]
    return tokens / (paired + seconds), np.median([tokens / seconds for tokens, seconds in epochs])


def _epoch(iterator, batches):
    """Tokens and seconds of some batches."""
    began = time.perf_counter()
    tokens = 0
    for (source, _), target, _ in itertools.islice(iterator, batches):
        tokens += np.count_nonzero(source) + np.count_nonzero(target)
    return tokens, time.perf_counter() - began


def measure(text, vocabulary, batch_tokens, records=None):
    """Tokens a second by what an epoch begins with.

    Args:
        text: a `ParallelText`.
        vocabulary: a `Vocabulary`.
        batch_tokens: tokens of an update on either side.
        records: folder of a prepared corpus; None: not measured.
    """
    vocabulary.tokenize(text.sources[:1])
    from_text, from_ids = of_one_epoch(
        lambda: our_training.tokenize(text, vocabulary), batch_tokens
    )
    speeds = {"from lines of text, tokenizing included": from_text, "from ids in memory": from_ids}
    if records:
        speeds["from records on disk, reading included"] = of_one_epoch(
            lambda: our_training.read_records(records), batch_tokens
        )[0]
    return speeds


def main(_):
    text = our_training.read_text(DATA_DIR.value)
    vocabulary = learn(text.sources + text.targets, VOCABULARY_SIZE.value)
    rows = []
    for batch_tokens in map(int, BATCH_TOKENS.value):
        speeds = measure(text, vocabulary, batch_tokens, RECORDS.value)
        rows += [[batch_tokens, name, f"{speed:,.0f}"] for name, speed in speeds.items()]
    print_table(["batch_tokens", "input pipeline alone", "tok/s"], rows)


if __name__ == "__main__":
    DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of Multi30k.", required=True)
    VOCABULARY_SIZE = flags.DEFINE_integer("vocabulary_size", 8000, "V.")
    BATCH_TOKENS = flags.DEFINE_list("batch_tokens", ["1280", "2048"], "Positions of a side.")
    RECORDS = flags.DEFINE_string("records", None, "Folder of a prepared corpus: from there, too.")
    app.run(main)
