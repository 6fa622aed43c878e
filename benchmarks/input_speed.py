"""How fast batches are made when nothing trains on them: from lines of text, from ids in memory,
and from records on disk.
"""

import time

import numpy as np

from benchmarks import our_training


def of_one_epoch(make_pairs, batch_tokens):
    """Source and target tokens a second, padding left out: of making pairs and batches together,
    and of making batches alone.
    """
    began = time.perf_counter()
    stream = our_training.batches(make_pairs(), batch_tokens)
    paired = time.perf_counter()
    tokens = 0
    for (source, _), target, _ in (
        stream.dataset().take(stream.batches_per_epoch).as_numpy_iterator()
    ):
        tokens += np.count_nonzero(source) + np.count_nonzero(target)
    ended = time.perf_counter()
    return tokens / (ended - began), tokens / (ended - paired)


def measure(text, vocabulary, batch_tokens, records=None):
    """Tokens a second by what an epoch begins with.

    Args:
        text: a `ParallelText`.
        vocabulary: a `Vocabulary`.
        batch_tokens: positions of a batch on either side.
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
