"""How much memory training base takes: `python -m benchmarks.limits.memory`; and fine-tuning it:
`--learned=all,frozen,lora`.

The peak of resident memory (`ru_maxrss`) of a fresh process that trains base with 32,000 pieces,
six steps of 4,096 source and 4,096 target tokens without padding, through the same `fit` as
`keras_transformer.train`; TensorFlow itself included.
"""

import itertools
import json
import resource
import subprocess
import sys

from absl import app, flags

from benchmarks.peers.batches import DROPOUT, LABEL_SMOOTHING, SIZES
from benchmarks.peers.turns import ROOT

LIMITS = {"float32": 5.0, "bfloat16": 4.1}
# What learns: all; all but the table of embeddings and the encoder; or adapters of rank 8.
NOTHING = {"freeze": (), "lora_rank": 0, "lora_on": ("query", "value"), "lora_alpha": None}
LEARNED = {
    "all": NOTHING,
    "frozen": {**NOTHING, "freeze": ("embedding", "encoder")},
    "lora": {**NOTHING, "lora_rank": 8, "init_from": "another"},
}
STEPS = 6

VOCABULARY_SIZE = flags.DEFINE_integer("vocabulary_size", 32000, "Pieces.")
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 4096, "Tokens of a batch on either side.")
LENGTH = flags.DEFINE_integer("length", 32, "Tokens of a sentence on either side.")
PRECISIONS = flags.DEFINE_list("precisions", list(LIMITS), "float32, bfloat16.")
PARTS = flags.DEFINE_list("learned", ["all"], f"What learns: {', '.join(LEARNED)}.")
TRAIN = flags.DEFINE_enum(
    "train", None, list(LIMITS), "Train in this very process, and print its peaks in GB."
)


def peak():
    """GB (10^9 bytes) of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def train(precision, part):
    """The peaks of this process, with the model built and after training; and the optimizer's
    slots.
    """
    # The parent must stay small: a child begins with its parent's peak.
    import keras
    import numpy as np

    from benchmarks.peers import our_training
    from keras_transformer.models.learned_part import choose_learned
    from keras_transformer.training.checkpoint import LOW_RANK

    model = our_training.compiled(
        SIZES["base"],
        VOCABULARY_SIZE.value,
        precision,
        DROPOUT,
        LABEL_SMOOTHING,
        choose=lambda model: choose_learned(model, LEARNED[part], LOW_RANK),
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
    slots = sum(np.asarray(slot).nbytes for slot in model.optimizer.variables) / 1e9
    return {"built": built, "trained": peak(), "slots": slots}


def main(_):
    if TRAIN.value:
        print(json.dumps(train(TRAIN.value, *PARTS.value)))
        return
    print("| precision | learns | peak GB | limit GB | | before training GB | slots GB |")
    print("|---|---|---|---|---|---|---|")
    for precision, part in itertools.product(PRECISIONS.value, PARTS.value):
        sizes = [f"--{flag.name}={flag.value}" for flag in (VOCABULARY_SIZE, BATCH_TOKENS, LENGTH)]
        command = [sys.executable, "-m", "benchmarks.limits.memory", f"--train={precision}"]
        command += [f"--learned={part}", *sizes]
        output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if output.returncode:
            raise SystemExit(f"training in {precision} failed:\n{output.stderr[-2000:]}")
        peaks = json.loads(output.stdout.splitlines()[-1])
        verdict = "met" if peaks["trained"] <= LIMITS[precision] else "missed"
        print(
            f"| {precision} | {part} | {peaks['trained']:.2f} | {LIMITS[precision]} | {verdict} | "
            f"{peaks['built']:.2f} | {peaks['slots']:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    app.run(main)
