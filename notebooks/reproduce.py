# ---
# jupyter:
#   jupytext:
#     formats: py:percent,ipynb
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Tables 1 and 3, reproduced
#
# Both tables are commands. Called as below, they keep what they measure in
# `benchmarks/paper/results`: a file for each layer in `table1`, and the scores of all rows in
# `table3.json`.
#
#     python -m benchmarks.paper.table1 --output_dir=benchmarks/paper/results/table1
#     python -m benchmarks.paper.table3 --scale=small --data_dir=multi30k \
#       --kept=benchmarks/paper/results/table3.json
#
# Both resume where they were interrupted. This page reads these results and shows the paper's
# columns next to them. Without results it measures table 1 at toy size, by the same command; then
# the exponents of time and memory are those of short sequences, and say little.

# %%
import functools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from keras_transformer.startup import start_tensorflow

# Without what TensorFlow says of the machine.
start_tensorflow()

import numpy as np
from IPython.display import Markdown, display

import keras_transformer
from keras_transformer.models import Transformer
from keras_transformer.visualization import charts
from keras_transformer.visualization.charts import Panel
from keras_transformer.visualization.picture_file import Drawing

ROOT = pathlib.Path(keras_transformer.__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.paper.paper_table3 import BASE, PAPER, comparable, hyperparameters
from benchmarks.paper.table1 import exponent
from benchmarks.paper.table1_layers import PAPER as COMPLEXITY

RESULTS = ROOT / "benchmarks" / "paper" / "results"


def table(header, rows):
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return Markdown("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines))


# %% [markdown]
# ## Table 1: what a layer costs
#
# Per layer, for a sequence of n positions of width d: operations, sequential operations, and the
# longest path between two positions. The exponents of n are fitted to the time of a forward and
# backward pass, and to its memory; those of the last two columns are counted in the layer's graph,
# so that they are exact even at toy size.

# %%
results_dir = RESULTS / "table1"
is_kept = any(results_dir.glob("*.json"))
if not is_kept:
    temporary = tempfile.TemporaryDirectory()
    results_dir = pathlib.Path(temporary.name)
    toy = ["--lengths=64,128,256", "--width=32", "--heads=2", "--rank=16"]
    chosen = "--layers=self-attention,linear,GRU,convolution"
    command = [
        sys.executable,
        "-m",
        "benchmarks.paper.table1",
        *toy,
        chosen,
        f"--output_dir={results_dir}",
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    print("Measured now, at toy size: none is kept. The first command above measures the table.")

measured = {}
for name in COMPLEXITY:
    path = results_dir / f"{name.replace(' ', '_')}.json"
    if path.is_file():
        measures = json.loads(path.read_text(encoding="utf-8"))
        measured[name] = {
            of: {int(n): value for n, value in by_n.items()} for of, by_n in measures.items()
        }
if is_kept:
    print("Kept:", ", ".join(measured))
    missing = [name for name in COMPLEXITY if name not in measured]
    print("Not measured yet:", ", ".join(missing) or "none")
else:
    temporary.cleanup()

rows = []
paths = {}
for name, measures in measured.items():
    operations, sequential, path = COMPLEXITY[name]
    passed = {n: layers * measures["depth"][n] for n, layers in measures["layers"].items()}
    paths[name] = exponent(passed)
    exponents = [exponent(measures[measure]) for measure in ("seconds", "bytes", "depth")]
    time, memory, depth = (f"{value:z.2f}" for value in exponents)
    rows.append(
        [name, operations, time, memory, f"{sequential}: {depth}", f"{path}: {paths[name]:z.2f}"]
    )
header = ["layer", "operations", "time, exponent of n", "memory", "sequential", "longest path"]
table(header, rows)

# %% [markdown]
# The paper's argument is in the last column: self-attention connects any two positions by a path of
# constant length, a recurrent layer by one of length n. The exponents are 0 and 1, as counted.

# %%
counted = [(name, path) for name, path in (("self-attention", 0), ("LSTM", 1), ("GRU", 1))]
there = [(name, path) for name, path in counted if name in paths]
assert there
for name, path in there:
    assert abs(paths[name] - path) < (0.1 if path else 0.05)
series = {
    name: (list(measures["seconds"]), list(measures["seconds"].values()))
    for name, measures in measured.items()
}
Drawing(functools.partial(charts.draw, [Panel("seconds, forward and backward", "n", series)]))

# %% [markdown]
# ## Table 3: what matters in the model
#
# First what needs no training: the parameters of a row, as its difference from base. Base has 63.0
# million with 37,000 pieces, and the paper says 65. The differences of the rows do not depend on
# the vocabulary, unless d_model changes. The page builds three rows; `python -m
# benchmarks.paper.table3` builds all.

# %%
counts = {}
for row in (BASE, "table3/b_d_k_16", "table3/c_d_ff_1024"):
    counts[row] = Transformer(hyperparameters(row)).count_params() / 1e6
rows = []
for row, millions in counts.items():
    ours = millions - counts[BASE]
    theirs = PAPER[row].millions - PAPER[BASE].millions
    assert abs(ours - theirs) < 1
    rows.append([row, f"{millions:.2f}", f"{ours:+.2f}", PAPER[row].millions, f"{theirs:+d}"])
table(["row", "millions", "more than base", "paper", "more than base"], rows)

# %% [markdown]
# Then what was trained: for each row at the small scale, perplexity per piece and BLEU on the
# development set, mean over the seeds, next to the paper's. Only scores with equal updates, tokens,
# text and arithmetic are compared.

# %%
path = RESULTS / "table3.json"
scores, left_out = comparable(json.loads(path.read_text("utf-8")) if path.is_file() else {})
if scores:
    first = scores[next(iter(scores))][0]
    updates = f"{first['steps']:,} updates of {first['batch_tokens']:,} tokens"
    print(f"{len(scores)} of {len(PAPER)} rows, {updates}")
else:
    print("None is kept: the second command above trains the rows.")
if left_out:
    print("Left out, of other updates, tokens, text, arithmetic or rows:", ", ".join(left_out))

rows = []
for name, runs in scores.items():
    perplexity, points = (
        f"{statistics.mean(run[metric] for run in runs):.2f}" for metric in ("perplexity", "bleu")
    )
    paper = PAPER[name]
    rows.append([name, len(runs), perplexity, points, f"{paper.perplexity:.2f}", paper.bleu])
header = ["row", "seeds", "PPL a piece", "BLEU (dev)", "paper: PPL", "paper: BLEU"]
table(header, rows) if rows else None

# %% [markdown]
# Which of the paper's findings can be seen here? The rank correlation between our perplexities and
# the paper's, over the rows that were measured, shows how well the order agrees: 1 is complete
# agreement, 0 none.


# %%
def ranks(values):
    """The place of each value in their order, from 0; equal values share theirs."""
    values = np.array(values)
    return [(values < value).sum() + ((values == value).sum() - 1) / 2 for value in values]


if len(rows) > 2:
    ours = ranks([float(row[2]) for row in rows])
    theirs = ranks([float(row[4]) for row in rows])
    print(f"correlation of ranks: {np.corrcoef(ours, theirs)[0, 1]:.2f} over {len(rows)} rows")
    labels = [row[0].removeprefix("table3/") for row in rows]
    print("best to worst here:", *np.array(labels)[np.argsort(ours)])

# %% [markdown]
# Each row against base. What the paper found of d_k, of depth and of width shows at this scale.
# What needs long training does not: that no dropout, or a single head, hurts.

# %%
if BASE in scores:
    panels = []
    for title, here, there in (("perplexity a piece", 2, 4), ("BLEU", 3, 5)):
        base = next(row for row in rows if row[0] == BASE)
        places = list(range(len(rows)))
        series = {
            "here": (places, [float(row[here]) - float(base[here]) for row in rows]),
            "paper": (places, [float(row[there]) - float(base[there]) for row in rows]),
        }
        panels.append(Panel(f"{title}, less base's", "", series, names=labels))
    display(Drawing(functools.partial(charts.draw, panels)))
