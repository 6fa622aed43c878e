"""Whether bfloat16 learns what float32 learns: `python -m benchmarks.loss_curves
--data_dir=multi30k`.

Trains small on Multi30k with either precision and two seeds, all on batches of the same size, and
prints the mean loss of each stretch of steps. The two precisions agree where they differ by no more
than two seeds of one precision do.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
from absl import app, flags

from benchmarks.tables import print_table
from benchmarks.turns import ROOT

PRECISIONS = ("float32", "bfloat16")

DATA_DIR = flags.DEFINE_string(
    "data_dir",
    None,
    "Folder of Multi30k: train.*, val.*, test_2016_flickr.* in en and de.",
    required=True,
)
STEPS = flags.DEFINE_integer("steps", 400, "Steps of a run.", lower_bound=1)
STRETCH = flags.DEFINE_integer("stretch", 50, "Steps whose losses make one mean.", lower_bound=1)
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 1024, "Tokens of an update on either side.")
SEEDS = flags.DEFINE_list("seeds", ["1", "2"], "Of the weights and dropout.")
RUN = flags.DEFINE_string(
    "run", None, "PRECISION-SEED: train in this very process, and print its means."
)


def train(precision, seed):
    """The mean loss per target token of each stretch."""
    import keras

    from benchmarks import our_training
    from benchmarks.sizes import DROPOUT, LABEL_SMOOTHING, SIZES
    from pipelines.vocabularies.vocabulary import learn

    text = our_training.read_text(DATA_DIR.value)
    vocabulary = learn(text.sources + text.targets, 8000)
    model = our_training.compiled(
        SIZES["small"], vocabulary.size, precision, DROPOUT, LABEL_SMOOTHING, seed
    )
    sums = []
    watcher = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: sums.append(
            (logs["loss"] * logs["labels"], logs["labels"])
        ),
    )
    our_training.train(
        model,
        our_training.tokenize(text, vocabulary),
        BATCH_TOKENS.value,
        watcher,
        last_step=STEPS.value,
    )
    # What is logged is the mean since the epoch began: the sums start anew with each.
    steps = np.array(sums)
    before = np.vstack([[0.0, 0.0], steps[:-1]])
    before[steps[:, 1] < before[:, 1]] = 0.0
    stretches = (
        (steps - before)[: len(steps) // STRETCH.value * STRETCH.value]
        .reshape(-1, STRETCH.value, 2)
        .sum(axis=1)
    )
    return (stretches[:, 0] / stretches[:, 1]).tolist()


def main(_):
    if RUN.value:
        precision, _, seed = RUN.value.partition("-")
        print(json.dumps(train(precision, int(seed))))
        return
    runs = [f"{precision}-{seed}" for precision in PRECISIONS for seed in SEEDS.value]
    given = [f"--data_dir={pathlib.Path(DATA_DIR.value).resolve()}"]
    given += [f"--{flag.name}={flag.value}" for flag in (STEPS, STRETCH, BATCH_TOKENS)]
    curves = {}
    for run in runs:
        command = [sys.executable, "-m", "benchmarks.loss_curves", f"--run={run}", *given]
        output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if output.returncode:
            raise SystemExit(f"{run} failed:\n{output.stderr[-2000:]}")
        curves[run] = np.array(json.loads(output.stdout.splitlines()[-1]))
    of = {
        precision: np.array([curves[f"{precision}-{seed}"] for seed in SEEDS.value])
        for precision in PRECISIONS
    }
    between_precisions = np.abs(of["float32"].mean(axis=0) - of["bfloat16"].mean(axis=0))
    between_seeds = np.max([np.ptp(curve, axis=0) for curve in of.values()], axis=0)
    columns = np.transpose([*curves.values(), between_precisions, between_seeds])
    rows = [
        [str((place + 1) * STRETCH.value), *(f"{loss:.3f}" for loss in losses)]
        for place, losses in enumerate(columns)
    ]
    print_table(["steps to", *runs, "between precisions", "between seeds"], rows)


if __name__ == "__main__":
    app.run(main)
