"""Table 3 of the paper (Vaswani et al. 2017, section 6.2): `python -m
benchmarks.paper.table3` builds the model of each row and prints its parameters beside the paper's,
and by how much its difference from base is off, with 37,000 pieces and with 41,000.

`--scale=small --data_dir=multi30k` also trains each row: half as many layers, widths a quarter of
the paper's, all else by the row's flag file, the same number of tokens for each. Printed are
perplexity, accuracy and BLEU of the development set, of the last weights: "no checkpoint
averaging". The rows of label smoothing show what section 5.4 says: it "hurts perplexity, [...] but
improves accuracy and BLEU score". A row that is done is not trained again, one that was interrupted
goes on.
"""

from absl import app, flags

from benchmarks.paper import small_runs
from benchmarks.paper.paper_table3 import (
    BASE,
    FITTING_VOCABULARY,
    PAPER,
    VOCABULARY,
    hyperparameters,
    more_than_base,
    small_scale,
)
from benchmarks.tables import print_table

SCALE = flags.DEFINE_enum("scale", "paper", ["paper", "small"], "Count parameters, or train too.")
RUN_DIR = flags.DEFINE_string("run_dir", "runs/table3", "Where the runs lie.")
ROWS = flags.DEFINE_list("rows", list(PAPER), "Flag files to run, without .flags.")

OF_BIG = (
    "No number of pieces suits big: its d_ff of 4096 in place of 2048 makes 50.4 million more than "
    "the row of d_model 1024 has, where the paper's column says 45."
)


def arguments_of(row: str) -> list[str]:
    """What trains a row at the small scale."""
    values = small_scale(row)
    return [f"--flagfile={row}.flags", *(f"--{name}={value}" for name, value in values.items())]


def name_of(row: str) -> str:
    """The name of a row's runs."""
    return row.removeprefix("table3/")


def parameters():
    """Millions of parameters of each row, at the paper's scale, from built models."""
    import keras

    from keras_transformer.models import Transformer

    counts = {}
    for row in dict.fromkeys([BASE, *ROWS.value]):
        counts[row] = Transformer(hyperparameters(row)).count_params() / 1e6
        keras.utils.clear_session()
    return counts


def print_parameters():
    """Print what each row has more than base, for two numbers of pieces, and how far this is off
    the paper's column.
    """
    counts = parameters()
    rows = []
    for row in ROWS.value:
        cells = [row, f"{counts[row]:.2f}"]
        millions = PAPER[row].millions
        theirs = None if millions is None else millions - PAPER[BASE].millions
        cells += ["", ""] if theirs is None else [millions, f"{theirs:+d}"]
        for pieces in (VOCABULARY, FITTING_VOCABULARY):
            ours = more_than_base(row, counts, pieces)
            cells += [f"{ours:+.2f}", "" if theirs is None else f"{ours - theirs:+.2f}"]
        rows.append(cells)
    header = ["row", f"million, {VOCABULARY:,} pieces", "paper: million", "paper: more than base"]
    for pieces in (VOCABULARY, FITTING_VOCABULARY):
        header += [f"more than base, {pieces:,}", "off by"]
    print_table(header, rows)
    print(f"\n{OF_BIG}")


def print_results(scores):
    """Print a line for each row, from what `small_runs.train_all` returned."""
    rows = [
        (
            row,
            *small_runs.spreads(scores, name_of(row)),
            f"{PAPER[row].perplexity:.2f}",
            PAPER[row].bleu,
        )
        for row in ROWS.value
    ]
    print_table(("row", *small_runs.HEADS, "paper: PPL", "paper: BLEU"), rows)


def main(_):
    if SCALE.value == "paper":
        print_parameters()
        return
    arguments = {name_of(row): arguments_of(row) for row in ROWS.value}
    print_results(small_runs.train_all(RUN_DIR.value, arguments))


if __name__ == "__main__":
    app.run(main)
