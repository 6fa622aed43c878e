"""Why scores are divided by sqrt(d_k) (Vaswani et al. 2017, section 3.2.1): `python -m
benchmarks.paper.scaling`.

A small model learns to copy sentences with scaled, unscaled and additive attention, for several
d_k: "without scaling for larger values of d_k" additive attention does better. Printed are the
share of right words of sentences that were not trained on, the mean of seeds and half of what lies
between the least and the greatest, and time and memory of a forward and backward pass of attention
alone. Each attention is measured in a process of its own.
"""

import json
import subprocess
import sys

from absl import app, flags

from benchmarks.paper.small_runs import spread
from benchmarks.tables import print_table
from keras_transformer.models.variants import ATTENTIONS

KINDS = ("scaled_dot_product", "dot_product", "additive")
WIDTHS = flags.DEFINE_list("d_k", ["16", "32", "64", "128", "256"], "Components of a key, rising.")
STEPS = flags.DEFINE_integer("steps", 1000, "Updates of each model that is trained.", 1)
TRIALS = flags.DEFINE_integer("trials", 2, "Models of each kind and d_k, of seeds 1, 2, ...", 1)
LENGTH = flags.DEFINE_integer("length", 256, "n of the attention that is timed.", 1)
ONE = flags.DEFINE_enum("one", None, KINDS, "Measure this attention in this very process.")
HEADS = 4
ROUNDS = 5


def measure(kind):
    """By d_k: the accuracies of the seeds, seconds and bytes of a pass."""
    import numpy as np
    import tensorflow as tf

    from benchmarks.paper import copying, table1_layers
    from keras_transformer import layers

    similarity = getattr(layers, ATTENTIONS[kind].similarity)
    random = np.random.default_rng(0)

    def passes(width):
        x = tf.constant(random.normal(size=(1, LENGTH.value, HEADS * width)).astype("float32"))
        heads = layers.SoftmaxHeads(similarity())
        return table1_layers.passes(table1_layers.SelfAttention(heads, HEADS), x)

    widths = sorted(map(int, WIDTHS.value))
    functions = {width: passes(width) for width in widths}
    # What any call needs is loaded by one that is less than any of these.
    passes(widths[0] // 2)()
    before = table1_layers.resident_bytes()
    found = {}
    for width, function in functions.items():
        function.get_concrete_function()
        found[width] = {"bytes": table1_layers.highest_bytes(function) - before}
        found[width]["seconds"] = table1_layers.medians({0: function}, ROUNDS)[0]
    for width in widths:
        choices = {"attention": kind, "d_k": width, "d_v": 16}
        models = (copying.train(STEPS.value, seed + 1, **choices) for seed in range(TRIALS.value))
        found[width]["accuracy"] = [
            100 * copying.accuracy(model, *copying.TRAINED) for model in models
        ]
        print(kind, width, found[width], file=sys.stderr, flush=True)
    return found


def in_own_process(kind):
    """What `measure` gives."""
    command = [sys.executable, "-m", "benchmarks.paper.scaling", f"--one={kind}", *sys.argv[1:]]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.splitlines()[-1])


def main(_):
    if ONE.value:
        print(json.dumps(measure(ONE.value)))
        return
    found = {kind: in_own_process(kind) for kind in KINDS}
    rows = []
    for width in found[KINDS[0]]:
        ours = [found[kind][width] for kind in KINDS]
        rows.append(
            (
                width,
                *(spread(one["accuracy"], 1) for one in ours),
                *(f"{one['seconds'] * 1000:.1f}" for one in ours),
                *(f"{one['bytes'] / 1e6:.0f}" for one in ours),
            )
        )
    names = ("scaled", "unscaled", "additive")
    columns = [f"{name}: {unit}" for unit in ("accuracy, %", "ms", "MB") for name in names]
    print_table(("d_k", *columns), rows)


if __name__ == "__main__":
    app.run(main)
