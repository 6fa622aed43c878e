"""BLEU of sentences that are longer than any in training, for each kind of positions (Vaswani et
al. 2017, section 3.5: sinusoids "may allow the model to extrapolate"):

    python -m benchmarks.paper.extrapolation --data_dir=multi30k --write_joined=FOLDER
    python -m benchmarks.paper.extrapolation --data_dir=FOLDER --seeds=1,2 --updates=700

The first command writes text in which a line is a sentence of Multi30k, or that and those that
follow it: one or two to train, one to eight to score. tiny.flags, half as wide, learns from pairs
of at most 32 pieces a side, with each kind of positions for as many updates. All pairs of the
development set are translated greedily and scored by the pieces of their longer side.
`--output=FILE` keeps BLEU as JSON.
"""

import functools
import itertools
import json
import pathlib

from absl import app, flags

from benchmarks.paper import small_runs
from benchmarks.tables import print_table
from pipelines.line_files import locate, read_lines
from pipelines.whole_files import write_json, write_whole

RUN_DIR = flags.DEFINE_string("run_dir", "runs/extrapolation", "Where the runs lie.")
WRITE = flags.DEFINE_string("write_joined", None, "Write the joined sentences here, and stop.")
OUTPUT = flags.DEFINE_string("output", None, "JSON file of BLEU by positions, seed and bucket.")
POSITIONS = ("sinusoidal", "learned", "relative", "rotary", "alibi")
LONGEST_TRAINED = 32
# By name of a file that is written: the file it is made of, and how many sentences are in a line.
JOINED = {"train": ("train", (1, 2)), "val": ("val", (1,)), "longer": ("val", (1, 2, 3, 4, 6, 8))}
# Most pieces of the longer side, EOS among them.
BUCKETS = (16, 32, 48, 64, 96, 128)
SIZES = (
    *("--flagfile=tiny.flags", *small_runs.HALF_WIDTH, "--protect="),
    *("--warmup_steps=200", f"--max_train_length={LONGEST_TRAINED}", "--test_prefix=longer"),
)


def lines_of(lines: list[str], count: int) -> list[str]:
    """Lines of `count` sentences that follow each other; what is left at the end is left out."""
    whole = len(lines) - len(lines) % count
    return [" ".join(lines[first : first + count]) for first in range(0, whole, count)]


def write_joined(folder: pathlib.Path) -> None:
    """Write sentences and those that follow them as train.*, val.* and longer.*."""
    for name, (split, counts) in JOINED.items():
        for side in ("en", "de"):
            lines = read_lines(locate(pathlib.Path(small_runs.DATA_DIR.value), f"{split}.{side}"))
            text = "".join(f"{line}\n" for count in counts for line in lines_of(lines, count))
            write_whole(
                folder / f"{name}.{side}",
                functools.partial(pathlib.Path.write_text, data=text, encoding="utf-8"),
            )


def by_length(folder: pathlib.Path) -> list[float]:
    """BLEU of a run on the joined development set, one of each bucket, measured once."""
    path = folder / "by_length.json"
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    import numpy as np

    from keras_transformer import Translator
    from keras_transformer.evaluation import bleu
    from keras_transformer.inference.held_out_text import held_out_text
    from pipelines import vocabularies

    translator = Translator.load(small_runs.last_weights(folder), beam_size=1)
    text = held_out_text(translator.description, str(folder), "test")
    vocabulary = vocabularies.load(folder).source  # That of both sides.
    lengths = np.max([vocabulary.tokenize(lines).row_lengths() for lines in text], axis=0)
    found = []
    for before, last in itertools.pairwise((0, *BUCKETS)):
        rows = np.flatnonzero((lengths > before) & (lengths <= last))
        sources, references = ([side[row] for row in rows] for side in text)
        found.append(bleu.score(translator.translate(sources), references)["bleu"])
        print(f"{folder.name}, {before + 1} to {last}: {len(rows)} lines, BLEU {found[-1]:.2f}")
    write_json(path, found)
    return found


def main(_):
    if WRITE.value:
        write_joined(pathlib.Path(WRITE.value))
        return
    arguments = {name: [*SIZES, f"--positions={name}"] for name in POSITIONS}
    found = {name: [] for name in POSITIONS}
    for name, seed in small_runs.train_all(RUN_DIR.value, arguments):
        found[name].append(by_length(small_runs.folder_of(RUN_DIR.value, name, seed)))
    rows = [
        (name, *(small_runs.spread(column, 2) for column in zip(*of_seeds, strict=True)))
        for name, of_seeds in found.items()
    ]
    heads = (f"{before + 1} to {last}" for before, last in itertools.pairwise((0, *BUCKETS)))
    print_table(("--positions", *heads), rows)
    if OUTPUT.value:
        write_json(pathlib.Path(OUTPUT.value), found)


if __name__ == "__main__":
    app.run(main)
