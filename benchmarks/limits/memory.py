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

from benchmarks.peers.batches import DROPOUT, LABEL_SMOOTHING, SIZES
from benchmarks.peers.turns import ROOT

LIMITS = {"float32": 5.0, "bfloat16": 4.1}
STEPS = 6

VOCABULARY_SIZE = flags.DEFINE_integer("vocabulary_size", 32000, "Pieces.")
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 4096, "Tokens of a batch on either side.")
LENGTH = flags.DEFINE_integer("length", 32, "Tokens of a sentence on either side.")
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

    from benchmarks.peers import our_training

    model = our_training.compiled(
        SIZES["base"], VOCABULARY_SIZE.value, precision, DROPOUT, LABEL_SMOOTHING
    )
    built = peak()
    pairs = BATCH_TOKENS.value // LENGTH.value * (STEPS + 1)
    ids = (
        np.random.default_rng(1)
        .integers(4, VOCABULARY_SIZE.value, (2, pairs, LENGTH.value))
        .astype("int32")
    )
    our_training.train(
        model,
        our_training.as_pairs(*ids),
        BATCH_TOKENS.value,
        keras.callbacks.Callback(),
        last_step=STEPS,
    )
    return {"built": built, "trained": peak()}


def main(_):
    if TRAIN.value:
        print(json.dumps(train(TRAIN.value)))
        return
    print("| precision | peak GB | limit GB | | before training GB |\n|---|---|---|---|---|")
    for precision in PRECISIONS.value:
        sizes = [f"--{flag.name}={flag.value}" for flag in (VOCABULARY_SIZE, BATCH_TOKENS, LENGTH)]
        command = [sys.executable, "-m", "benchmarks.limits.memory", f"--train={precision}", *sizes]
        output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if output.returncode:
            raise SystemExit(f"training in {precision} failed:\n{output.stderr[-2000:]}")
        peaks = json.loads(output.stdout.splitlines()[-1])
        verdict = "met" if peaks["trained"] <= LIMITS[precision] else "missed"
        print(
            f"| {precision} | {peaks['trained']:.2f} | {LIMITS[precision]} | {verdict} | "
            f"{peaks['built']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    app.run(main)
