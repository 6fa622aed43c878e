"""Training speed beside the peers': `python -m benchmarks.peers.training --data_dir=multi30k`.

Every system trains on the same batches of ids, in a process of its own; they take turns, round by
round, and a number is the median of the rounds. tok/s counts source and target tokens, no padding.
Run it on a quiet machine: "cores busy" below the number of cores by more than a tenth or two means
that something else ran, or that the system waits for itself. All processes of a size stay in memory
(base: about 2 GB each).
"""

import itertools
import pathlib
import statistics
import tempfile

import numpy as np
from absl import app, flags

from benchmarks.peers import batches, ours
from benchmarks.peers.batches import SIZES
from benchmarks.peers.turns import OPENNMT, OURS, TORCH, starter, take_turns
from benchmarks.tables import print_table
from pipelines.vocabularies.vocabulary import learn

# By name: module, then what its task says beside the sizes.
SYSTEMS = {
    "fit_float32": (OURS, {"precision": "float32"}),
    "fit_bfloat16": (OURS, {"precision": "bfloat16"}),
    "torch_float32": (TORCH, {"precision": "float32"}),
    "torch_bfloat16": (TORCH, {"precision": "bfloat16"}),
    "opennmt_float32": (OPENNMT, {"precision": "float32"}),
}
REFERENCE = "torch_float32"
DATA_DIR = flags.DEFINE_string(
    "data_dir", None, "Folder of Multi30k: train.*, val.*, test_2016_flickr.*, en and de."
)
CHOSEN_SIZES = flags.DEFINE_list("sizes", list(SIZES), "Models: small, base.")
CHOSEN_SYSTEMS = flags.DEFINE_list("systems", list(SYSTEMS), "Which systems take turns.")
ROUNDS = flags.DEFINE_integer("rounds", 5, "Rounds that count.", lower_bound=1)
STEPS = flags.DEFINE_list(
    "steps",
    ["20", "6"],
    "Steps of a system in a round, for each size; the last serves for the rest.",
)
BATCH_TOKENS = flags.DEFINE_integer(
    "batch_tokens", 2048, "Tokens of an update on either side, without padding."
)
VOCABULARY_SIZE = flags.DEFINE_integer("vocabulary_size", 8000, "Pieces.")


def measure(size, steps, pairs, vocabulary, folder):
    """Let the systems train a size in turns. Yields a row of the table for each."""
    stream = ours.batches(pairs, BATCH_TOKENS.value).arrays()
    needed = itertools.islice(stream, steps * (ROUNDS.value + 1))
    arrays = [(source, target) for (source, _), target, _ in needed]
    batches.save(folder / f"{size}.npz", arrays)
    vocabulary.save(folder / "vocabulary.model")
    task = {
        "does": "train",
        "size": SIZES[size],
        "vocabulary_size": vocabulary.size,
        "batch_tokens": BATCH_TOKENS.value,
        "batches": str(folder / f"{size}.npz"),
        "data_dir": str(pathlib.Path(DATA_DIR.value).resolve()),
        "vocabulary": str(folder / "vocabulary.model"),
    }
    starters = {
        name: starter(module, {**task, **options}, folder / f"{size}_{name}.log")
        for name, (module, options) in SYSTEMS.items()
        if name in CHOSEN_SYSTEMS.value
    }
    answers, unavailable = take_turns(starters, ROUNDS.value, steps)
    tokens = [np.count_nonzero(source) + np.count_nonzero(target) for source, target in arrays]
    # Of the rounds that count.
    tokens = np.array(tokens).reshape(-1, steps).sum(axis=1)[1:]
    speeds = {name: tokens / answered(rounds, "seconds") for name, rounds in answers.items()}
    for name in CHOSEN_SYSTEMS.value:
        if name in unavailable:
            yield [size, name, f"not run: {unavailable[name]}", "", "", ""]
            continue
        cores = answered(answers[name], "core_seconds") / answered(answers[name], "seconds")
        ratio = ""
        if REFERENCE in speeds:
            ratio = f"{statistics.median(speeds[name] / speeds[REFERENCE]):.2f}"
        speed = [f"{statistics.median(speeds[name]):.0f}"]
        speed += [f"{speeds[name].min():.0f}-{speeds[name].max():.0f}"]
        yield [size, name, *speed, f"{statistics.median(cores):.2f}", ratio]


def answered(rounds, key):
    """One entry of the answers of a system, as an array over the rounds."""
    return np.array([answer[key] for answer in rounds])


def main(_):
    if not DATA_DIR.value:
        raise app.UsageError("--data_dir is missing: a folder of Multi30k.")
    text = ours.multi30k(DATA_DIR.value).train
    vocabulary = learn(text.sources + text.targets, VOCABULARY_SIZE.value)
    pairs = ours.tokenize(text, vocabulary)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for place, size in enumerate(CHOSEN_SIZES.value):
            steps = int(STEPS.value[min(place, len(STEPS.value) - 1)])
            rows += measure(size, steps, pairs, vocabulary, pathlib.Path(folder))
    columns = ["size", "system", "tok/s", "rounds", "cores busy", f"x {REFERENCE}"]
    print_table(columns, rows)


if __name__ == "__main__":
    app.run(main)
