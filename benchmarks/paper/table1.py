"""Table 1 of the paper, measured (Vaswani et al. 2017, section 4): `python -m
benchmarks.paper.table1`.

For each layer type: time and memory of a forward and backward pass over n positions of width d, and
the exponent of n that fits them; the longest chain of operations in its graph ("sequential"); and
that chain times the layers that lie between the first position and the last ("longest path").
Attention is measured without its four projections, which the paper's table leaves out. Each layer
runs in a process of its own. A layer that was measured is not measured again, and what was kept
with other sizes is refused.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
from absl import app, flags

from benchmarks.tables import keep_settings, print_table
from pipelines.whole_files import write_json

LENGTHS = flags.DEFINE_list("lengths", ["256", "512", "1024", "2048", "4096", "8192"], "n.")
WIDTH = flags.DEFINE_integer("width", 512, "d.", 1)
HEADS = flags.DEFINE_integer("heads", 8, "h of the attentions.", 1)
RADIUS = flags.DEFINE_integer("radius", 64, "r of the restricted attention.", 1)
RANK = flags.DEFINE_integer("rank", 64, "K of the low-rank attention.", 1)
KERNEL = flags.DEFINE_integer("kernel", 3, "k of the convolutions.", 1)
ROUNDS = flags.DEFINE_integer("rounds", 3, "How often each time is taken.", 1)
FOLDER = flags.DEFINE_string("output_dir", "runs/table1", "Where results are kept.")
CHOSEN = flags.DEFINE_list("layers", None, "Which layers; all by default.")
ONE = flags.DEFINE_string("one", None, "Measure this layer, in this very process.")

# The graph's depth and the reach are counted at a small size: neither depends on the width.
SHORT = (16, 32, 64, 128)
SMALL = {"width": 8, "num_heads": 2, "radius": 4, "rank": 4, "kernel": 3}


def measure(name):
    """All that is measured of a layer: numbers by measure and then by n."""
    measures = counts(name)
    sizes = {
        "width": WIDTH.value,
        "num_heads": HEADS.value,
        "radius": RADIUS.value,
        "rank": RANK.value,
        "kernel": KERNEL.value,
    }
    import tensorflow as tf

    from benchmarks.paper import table1_layers

    random = np.random.default_rng(0)

    def passes(length):
        x = tf.constant(random.normal(size=(1, length, WIDTH.value)).astype("float32"))
        function = table1_layers.passes(table1_layers.make(name, length, **sizes), x)
        function.get_concrete_function()
        return function

    lengths = sorted(map(int, LENGTHS.value))
    functions = {length: passes(length) for length in lengths}
    # The first call of all loads what any call needs. Half of the shortest length: what is kept of
    # it is little beside what the others need.
    passes(max(lengths[0] // 2, 1))()
    before = table1_layers.resident_bytes()
    measures |= {"seconds": {}, "bytes": {}}
    for length, function in functions.items():
        # oneDNN's allocator keeps what a call has freed: the first call of a length shows what it
        # needs, if shorter ones come before longer ones.
        measures["bytes"][length] = table1_layers.highest_bytes(function) - before
        measures["seconds"][length] = table1_layers.seconds(function, ROUNDS.value)
        print(name, length, measures["seconds"][length], measures["bytes"][length], flush=True)
    return measures


def counts(name):
    """Depth of the graph, and layers to the farthest position, by n."""
    import keras

    from benchmarks.paper import table1_layers

    # A gradient that went through many layers would become 0 in float32.
    keras.config.set_dtype_policy("float64")
    functions = {"layers": table1_layers.layers_to_reach, "depth": table1_layers.depth}
    width = SMALL["width"]
    numbers = {
        measure: {n: function(table1_layers.make(name, n, **SMALL), n, width) for n in SHORT}
        for measure, function in functions.items()
    }
    keras.config.set_dtype_policy("float32")
    return numbers


def in_own_process(name):
    """What `measure` gives, kept in a file; a layer that was measured is not measured again."""
    path = pathlib.Path(FOLDER.value) / f"{name.replace(' ', '_')}.json"
    if not path.is_file():
        subprocess.run(
            [sys.executable, "-m", "benchmarks.paper.table1", f"--one={name}", *sys.argv[1:]],
            check=True,
        )
    measured = json.loads(path.read_text(encoding="utf-8"))
    return {of: {int(n): value for n, value in by_n.items()} for of, by_n in measured.items()}


def exponent(by_length):
    """The slope of a straight line through the logarithms: e in `a n^e`."""
    lengths = np.log(list(by_length))
    values = np.log(np.maximum(list(by_length.values()), 1e-12))
    return np.polyfit(lengths, values, 1)[0]


def show(results):
    from benchmarks.paper.table1_layers import PAPER

    longest = int(LENGTHS.value[-1])
    rows = []
    for name, measures in results.items():
        operations, sequential, path = PAPER[name]
        # A signal passes each layer's longest chain.
        passed = {n: layers * measures["depth"][n] for n, layers in measures["layers"].items()}
        rows.append(
            (
                name,
                operations,
                f"{exponent(measures['seconds']):.2f}",
                f"{exponent(measures['bytes']):.2f}",
                f"{measures['seconds'][longest]:.3f}",
                f"{measures['bytes'][longest] / 1e6:.0f}",
                f"{sequential}: {exponent(measures['depth']):.2f}",
                f"{path}: {exponent(passed):.2f}",
            )
        )
    header = (
        *("layer", "operations", "time, exponent of n", "memory, exponent"),
        *(f"s at {longest}", f"MB at {longest}", "sequential", "longest path"),
    )
    print_table(header, rows)


def main(_):
    if ONE.value:
        path = pathlib.Path(FOLDER.value) / f"{ONE.value.replace(' ', '_')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, measure(ONE.value))
        return
    from benchmarks.paper.table1_layers import PAPER

    sizes = (LENGTHS, WIDTH, HEADS, RADIUS, RANK, KERNEL, ROUNDS)
    keep_settings(FOLDER.value, {flag.name: flag.value for flag in sizes})
    show({name: in_own_process(name) for name in CHOSEN.value or PAPER})


if __name__ == "__main__":
    app.run(main)
