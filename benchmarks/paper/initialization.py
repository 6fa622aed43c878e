"""How the residual branches start (Vaswani et al. 2017, section 3.1, does not say): `python -m
benchmarks.paper.initialization --data_dir=FOLDER`.

tiny.flags, half as wide, with post-norm and pre-norm, each with all matrices by Glorot's rule and
with the last matrix of each sublayer scaled by the depth. Same text, same number of updates, three
seeds. `--write_default=FOLDER` writes the default corpus as such a folder.
"""

import functools
import itertools
import pathlib

from absl import app, flags

from benchmarks.paper import small_runs
from benchmarks.tables import print_table
from pipelines import corpora
from pipelines.whole_files import write_whole

RUN_DIR = flags.DEFINE_string("run_dir", "runs/initialization", "Where the runs lie.")
WRITE = flags.DEFINE_string("write_default", None, "Write the default corpus here, and stop.")
NORMS = ("post", "pre")
STARTS = ("glorot", "depth_scaled")


def write_default(folder: pathlib.Path) -> None:
    """Write the default corpus as train.* and val.*: one sentence a line."""
    corpus = corpora.load("home_assistant")
    for name, split in (("train", corpus.train), ("val", corpus.valid)):
        for language, lines in zip(("en", "de"), (split.sources, split.targets), strict=True):
            text = "".join(f"{line}\n" for line in lines)
            write_whole(
                folder / f"{name}.{language}",
                functools.partial(pathlib.Path.write_text, data=text, encoding="utf-8"),
            )


def main(_):
    if WRITE.value:
        write_default(pathlib.Path(WRITE.value))
        return
    arguments = {
        f"{norm}-{start}": [
            *("--flagfile=tiny.flags", *small_runs.HALF_WIDTH),
            *(f"--norm={norm}", f"--residual_initialization={start}"),
        ]
        for norm, start in itertools.product(NORMS, STARTS)
    }
    found = small_runs.train_all(RUN_DIR.value, arguments)
    rows = [(name, *small_runs.spreads(found, name, small_runs.DIGITS)) for name in arguments]
    print_table(("model", *small_runs.HEADS), rows)


if __name__ == "__main__":
    app.run(main)
