"""What section 5.4 says of label smoothing (Vaswani et al. 2017): it "hurts perplexity, as the
model learns to be more unsure, but improves accuracy and BLEU score".

`python -m benchmarks.label_smoothing --data_dir=multi30k` prints three rows of table 3 that differ
in it alone: epsilon 0, 0.1 (base) and 0.2, at the small scale. They are the runs of
`benchmarks.table3 --scale=small`, and are trained where that has not done it.
"""

from absl import app

from benchmarks import small_runs, table3
from benchmarks.tables import print_table

ROWS = {
    "0": "table3/d_label_smoothing_0",
    "0.1": "table3/base",
    "0.2": "table3/d_label_smoothing_0.2",
}


def main(_):
    arguments = {table3.name_of(row): table3.arguments_of(row) for row in ROWS.values()}
    found = small_runs.train_all(table3.RUN_DIR.value, arguments)
    digits = {"perplexity": 2, "accuracy": 2, "bleu": 2}
    rows = [
        (
            epsilon,
            *small_runs.spreads(found, table3.name_of(row), digits),
            table3.PAPER[row].perplexity,
            table3.PAPER[row].bleu,
        )
        for epsilon, row in ROWS.items()
    ]
    header = ("epsilon", "PPL a piece", "accuracy", "BLEU (dev)", "paper: PPL", "paper: BLEU")
    print_table(header, rows)


if __name__ == "__main__":
    app.run(main)
