"""Table 2 of the paper (Vaswani et al. 2017, section 6.1), and beside it runs of ours: `python -m
benchmarks.paper.table2 --runs=runs/a,runs/b`.

The paper's rows are quoted: BLEU on newstest2014 and training cost in floating-point operations, as
it estimates them. A run of ours was trained with --report, which counts them as well.

`--recipes=base,big` counts what the paper's own trainings take, without any: the products of a
forward pass of the flag file's model, three times for an update, times its tokens and steps.
"""

import json
import pathlib

from absl import app, flags

from benchmarks.paper.paper_table3 import hyperparameters
from benchmarks.tables import print_table

RECIPES = flags.DEFINE_list("recipes", [], "Of base and big, those to count.")
LENGTH = flags.DEFINE_integer("length", 30, "Pieces of a sentence, on each side.", 1)
RUNS = flags.DEFINE_list("runs", [], "Folders of runs that were trained with --report.")

# Model; BLEU En-De and En-Fr; operations En-De and En-Fr.
PAPER = [
    ("ByteNet", 23.75, None, None, None),
    ("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    ("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    ("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    ("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    ("Deep-Att + PosUnk Ensemble", None, 40.4, None, 8.0e20),
    ("GNMT + RL Ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    ("ConvS2S Ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    ("Transformer (base model)", 27.3, 38.1, 3.3e18, 3.3e18),
    ("Transformer (big)", 28.4, 41.8, 2.3e19, 2.3e19),
]


def read(run, name):
    path = pathlib.Path(run) / name
    if not path.is_file():
        raise app.UsageError(f"{path} is missing: train {run} with --report, and let it finish.")
    return json.loads(path.read_text(encoding="utf-8"))


def row_of(run):
    """What a run cost and reached: name, test BLEU, operations estimated and counted, minutes."""
    cost = read(run, "cost.json")
    corpus = read(run, "model.json")["corpus"]
    languages = f"{corpus['source_language']}-{corpus['target_language']}"
    return (
        pathlib.Path(run).name,
        f"{corpus['name']} {languages}",
        read(run, "evaluation.json")["bleu"],
        f"{cost['estimated']:.1e}",
        f"{cost['counted']:.1e}",
        f"{cost['seconds'] / 60:.1f}",
    )


# Sections 5.1 and 5.2: target tokens an update, steps, hours of 8 GPUs; table 2: operations.
TRAININGS = {"base": (25000, 100000, 12, 3.3e18), "big": (25000, 300000, 84, 2.3e19)}


def counted(name):
    """Operations of a training of the paper: as counted, and as the paper estimates them."""
    import keras
    import tensorflow as tf

    from keras_transformer.models import Transformer
    from keras_transformer.training.cost import forward_operations
    from keras_transformer.training.objective import Likelihood

    tokens, steps, hours, estimated = TRAININGS[name]
    sentence = tf.TensorSpec([1, LENGTH.value], tf.int32)
    model = Transformer(hyperparameters(name))
    forward = forward_operations(model, (sentence, sentence))
    keras.utils.clear_session()
    operations = forward / LENGTH.value * Likelihood.passes * tokens * steps
    rate = estimated / (hours * 3600 * 8)
    return (
        f"{name}.flags",
        f"{forward / LENGTH.value:.3g}",
        f"{operations:.2g}",
        f"{estimated:.1e}",
        f"{operations / estimated:.0%}",
        f"{rate / 1e12:.1f}",
    )


def main(_):
    if unknown := [name for name in RECIPES.value if name not in TRAININGS]:
        raise app.UsageError(f"--recipes must be some of base, big. Received: {unknown[0]}.")
    ours = [row_of(run) for run in RUNS.value]
    shown = [["" if value is None else value for value in row] for row in PAPER]
    quoted = [(*row[:3], *(f"{value:.1e}" if value else "" for value in row[3:])) for row in shown]
    print_table(("the paper", "En-De", "En-Fr", "cost En-De", "cost En-Fr"), quoted)
    if ours:
        header = ("run", "text", "BLEU", "cost as the paper's", "counted", "minutes")
        print_table(header, ours)
    if RECIPES.value:
        of_token = ("recipe", "operations a target token", "counted", "paper", "of the paper's")
        print_table((*of_token, "paper's TFLOP/s a GPU"), map(counted, RECIPES.value))


if __name__ == "__main__":
    app.run(main)
