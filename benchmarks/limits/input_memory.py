"""How much memory the pairs of a corpus take while batches are made of them, how fast batches
come, and how long it takes to begin and to resume in the middle:

python -m benchmarks.limits.input_memory --pairs=100000,1000000

Records of drawn ids are written first; nothing trains. Each row is a process of its own. Its peak
is that of resident memory (`VmHWM`), pages of mapped files among it, which the system takes back
when it needs room; its own is what it cannot take back (`RssAnon`, at most, read each hundredth of
a second).
"""

import itertools
import json
import pathlib
import re
import subprocess
import sys
import threading
import time

from absl import app, flags

from benchmarks.peers.turns import ROOT
from benchmarks.tables import print_table

SHARD = 100_000
PIECES = 32_000
BATCHES = 1000

PAIRS = flags.DEFINE_list("pairs", ["100000", "1000000"], "Pairs of each corpus.")
FOLDER = flags.DEFINE_string("folder", "input_memory", "Folder for the records; 100 bytes a pair.")
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 4096, "Tokens of a batch on either side.")
IDS = flags.DEFINE_list("ids", ["held", "mapped"], "What is measured, in turn.")
ONE = flags.DEFINE_list("one", None, "Measure in this very process: pairs, and one of --ids.")


def write(folder, pairs):
    """Records of pairs of 4 to 50 drawn ids a side."""
    import numpy as np

    from pipelines.batches.texts import TokenizedPairs
    from pipelines.corpora.record_files import write_shard
    from pipelines.vocabularies.token_ids import TokenIds

    folder.mkdir(parents=True, exist_ok=True)
    for number in range(0, pairs, SHARD):
        path = folder / f"train-{number // SHARD:05d}.tfrecord.gz"
        if path.exists():
            continue
        draw = np.random.default_rng(number)
        sides = []
        for _ in range(2):
            lengths = draw.integers(4, 51, min(SHARD, pairs - number))
            flat = draw.integers(4, PIECES, lengths.sum()).astype(np.uint16)
            sides.append(TokenIds.of_lengths(flat, lengths))
        write_shard(path, TokenizedPairs(*sides))


def read(folder, pairs, is_mapped):
    """The pairs of the records, as `Records` reads them."""
    import numpy as np

    from pipelines.corpora.record_files import Records

    records = object.__new__(Records)
    records.folder = folder
    records.map_dir = folder / "mapped" if is_mapped else None
    records.vocabulary = type("Vocabulary", (), {"size": PIECES})
    records.manifest = {
        "vocabulary": str(np.dtype(np.uint16)),
        "shards": [
            {"file": f"train-{start // SHARD:05d}.tfrecord.gz", "pairs": min(SHARD, pairs - start)}
            for start in range(0, pairs, SHARD)
        ],
    }
    return records.pairs(256)


def status(name):
    """GB (10^9 bytes) of this process."""
    text = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(rf"{name}:\s+(\d+) kB", text)[1]) * 1024 / 1e9


def watch(own):
    """Keep the most memory of its own that this process had in a list of one, for ever."""
    while True:
        own[0] = max(own[0], status("RssAnon"))
        time.sleep(0.01)


def measure(folder, pairs, is_mapped):
    """Seconds of reading, of arranging, and of the first batch in the middle; million tokens a
    second; GB of the libraries alone, peak, and own.
    """
    import numpy as np
    import tensorflow as tf

    from keras_transformer.training.replicas import distribute
    from pipelines.batches.batching import training_batches

    libraries = status("VmRSS")
    own = [0]
    threading.Thread(target=watch, args=[own], daemon=True).start()
    began = time.perf_counter()
    tokenized = read(folder, pairs, is_mapped)
    seconds = {"read": time.perf_counter() - began}
    began = time.perf_counter()
    stream = training_batches(tokenized.examples(), BATCH_TOKENS.value, seed=1)
    seconds["arranged"] = time.perf_counter() - began
    began = time.perf_counter()
    # What `model.fit` takes.
    iterator = iter(distribute(tf.distribute.get_strategy(), stream, stream.updates_per_epoch // 2))
    next(iterator)
    seconds["resumed"] = time.perf_counter() - began
    began = time.perf_counter()
    tokens = 0
    for (source, _), target, _ in itertools.islice(iterator, BATCHES):
        tokens += np.count_nonzero(source) + np.count_nonzero(target)
    speed = tokens / (time.perf_counter() - began)
    memory = {"libraries": libraries, "peak": status("VmHWM"), "own": own[0]}
    return {**seconds, "speed": speed / 1e6, **memory}


def main(_):
    folder = pathlib.Path(FOLDER.value)
    if ONE.value:
        pairs, how = ONE.value
        print(json.dumps(measure(folder / pairs, int(pairs), how != "held")))
        return
    rows = []
    for pairs in PAIRS.value:
        write(folder / pairs, int(pairs))
        for how in IDS.value:
            command = [sys.executable, "-m", "benchmarks.limits.input_memory"]
            command += [f"--one={pairs},{how}", f"--folder={folder.resolve()}"]
            process = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
            figures = json.loads(process.stdout.splitlines()[-1])
            rows.append([f"{int(pairs):,}", how, *(f"{number:.2f}" for number in figures.values())])
            print(rows[-1], flush=True)
    print_table(["pairs", "ids are", *figures], rows)


if __name__ == "__main__":
    app.run(main)
