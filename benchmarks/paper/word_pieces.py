"""Word pieces beside byte pairs, English to French (Vaswani et al. 2017, section 5.1, has 32,000 of
the former for that pair): `python -m benchmarks.paper.word_pieces --data_dir=multi30k
--seeds=1,2,3`.

tiny.flags, half as wide, with 4,000 of either, for as many updates.
"""

from absl import app, flags

from benchmarks.paper import small_runs
from benchmarks.tables import print_table

RUN_DIR = flags.DEFINE_string("run_dir", "runs/word_pieces", "Where the runs lie.")
SIZES = ("--flagfile=tiny.flags", *small_runs.HALF_WIDTH, "--protect=")


def main(_):
    arguments = {
        name: [*SIZES, "--target_language=fr", f"--vocabulary_model={name}"]
        for name in ("bpe", "word_piece")
    }
    found = small_runs.train_all(RUN_DIR.value, arguments)
    rows = [(name, *small_runs.spreads(found, name, small_runs.DIGITS)) for name in arguments]
    print_table(("--vocabulary_model", *small_runs.HEADS), rows)


if __name__ == "__main__":
    app.run(main)
