"""How much memory training base takes: `python -m benchmarks.limits.memory`.

The peak of resident memory (`ru_maxrss`) of a fresh process that trains base with 32,000 pieces,
six steps of 4,096 source and 4,096 target tokens without padding, through the same `fit` as
`keras_transformer.train`; TensorFlow itself included.
"""

import json
import resource
import subprocess
import sys

from absl import app, flags

from benchmarks.peers.batches import SIZES
from benchmarks.peers.turns import ROOT
from benchmarks.tables import print_table

LIMITS = {"float32": 5.0, "bfloat16": 4.1}
STEPS = 6
# Of a sentence on either side.
LENGTH = 32

VOCABULARY_SIZE = flags.DEFINE_integer("vocabulary_size", 32000, "Pieces.")
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 4096, "Tokens of a batch on either side.")
PRECISIONS = flags.DEFINE_list("precisions", list(LIMITS), "float32, bfloat16.")
TRAIN = flags.DEFINE_enum(
    "train", None, list(LIMITS), "Train in this very process, and print its peaks in GB."
)


def peak():
    """GB (10^9 bytes) of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def train(precision):
    """The peaks of this process, with the model built and after training."""
    # The parent must stay small: a child begins with its parent's peak.
    import keras
    import numpy as np

    from benchmarks.peers import ours

    model = ours.compiled(SIZES["base"], VOCABULARY_SIZE.value, precision)
    built = peak()
    shape = (2, BATCH_TOKENS.value // LENGTH * (STEPS + 1), LENGTH)
    ids = np.random.default_rng(1).integers(4, VOCABULARY_SIZE.value, shape).astype("int32")
    watcher = keras.callbacks.Callback()
    ours.fit_model(model, ours.as_pairs(*ids), BATCH_TOKENS.value, watcher, STEPS)
    return {"built": built, "trained": peak()}


def main(_):
    if TRAIN.value:
        print(json.dumps(train(TRAIN.value)))
        return
    rows = []
    for precision in PRECISIONS.value:
        sizes = [f"--{flag.name}={flag.value}" for flag in (VOCABULARY_SIZE, BATCH_TOKENS)]
        command = [sys.executable, "-m", "benchmarks.limits.memory", f"--train={precision}"]
        output = subprocess.run([*command, *sizes], cwd=ROOT, capture_output=True, text=True)
        if output.returncode:
            raise SystemExit(f"training in {precision} failed:\n{output.stderr[-2000:]}")
        peaks = json.loads(output.stdout.splitlines()[-1])
        verdict = "met" if peaks["trained"] <= LIMITS[precision] else "missed"
        both = [f"{peaks['built']:.2f}", f"{peaks['trained']:.2f}"]
        rows.append([precision, *both, LIMITS[precision], verdict])
    print_table(["precision", "before training, GB", "peak GB", "limit GB", ""], rows)


if __name__ == "__main__":
    app.run(main)
