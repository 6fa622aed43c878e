"""Parsers that learn from a part of a treebank, and from silver trees beside it (Vaswani et al.
2017, section 6.3), for `benchmarks.paper.parsing_study`.

The trees of a size are drawn by a fixed seed, because a treebank has them in the order of its
articles. The trees of a smaller size are among those of a larger one. Each parser is a training of
its own, whose command is printed and run. What is done is not done again, and a training that was
interrupted goes on.
"""

import gzip
import json
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Iterable

import numpy as np
from absl import app, flags

from benchmarks.paper.parsing_in_parts import loader, parsed_in_parts, weights_in
from benchmarks.tables import keep_settings, print_table
from keras_transformer.flagfiles import expand_flagfiles
from pipelines.whole_files import write_json, write_whole

SIZES = flags.DEFINE_list("sizes", [], "Numbers of trees to train on; 0: all.")
SILVER = flags.DEFINE_list(
    "silver", [], "Numbers of trees whose parser parses all others, to learn from these as well."
)
DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of the treebank, for --sizes, --silver.")
RUN_DIR = flags.DEFINE_string("run_dir", "runs/parsing_study", "Where results and runs lie.")
RECIPE = flags.DEFINE_string(
    "recipe", "--flagfile=parsing_small.flags", "Flags of the trainings of --sizes and --silver."
)
BEST_BELOW = flags.DEFINE_integer(
    "best_epoch_below",
    5000,
    "Sizes below it are scored by the epoch with the best F1 (--keep_best=f1), others by the mean "
    "of the last checkpoints; 0: all by that.",
)
SEED = 1
BY_BEST_EPOCH = ["--keep_best=f1", "--validation_sentences=200"]
# Greedy search of an unfinished parser finds much worse trees.
SILVER_SEARCH = {"beam_size": 4, "constrained": True}
BATCH_TOKENS = 1024
COLUMNS = ("trees", "weights", "beam", "F1, at most 40 words", "F1", "complete")
MEMBER = {"corpus": "treebank", "source_language": "en", "target_language": "trees"}


def print_sizes():
    """F1 against the number of trees, and with silver trees besides: each row as soon as it is
    there, between what the trainings print, and the whole table at the end.
    """
    sizes = [int(size) for size in dict.fromkeys((*SIZES.value, *SILVER.value))]
    jobs = [(str(size or "all"), trained, size) for size in sizes]
    jobs += [(f"{size} and silver", trained_with_silver, int(size)) for size in SILVER.value]
    rows = []
    for name, function, size in jobs:
        rows.append(_row(name, function(size)))
        print_table(COLUMNS, rows[-1:])
    print_table(COLUMNS, rows)


def _row(name, run):
    found = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
    figures = (found["short"]["f1"], found["all"]["f1"], found["all"]["complete"])
    return (name, found["weights"], found["beam_size"], *figures)


def study_folder() -> pathlib.Path:
    return pathlib.Path(RUN_DIR.value).resolve()


def trained(size: int) -> pathlib.Path:
    """The run that has learned from so many trees; 0: from all."""
    return _train(f"trees_{size or 'all'}", size, lambda: [f"--data_dir={treebank_of(size)}"])


def trained_with_silver(size: int) -> pathlib.Path:
    """The run that has learned from so many trees and from silver ones of all other sentences, each
    seen as often.
    """
    silver = weights_in(trained(size))
    return _train(f"trees_{size}_silver", size, lambda: _mixture_arguments(size), silver=silver)


def _mixture_arguments(size):
    mixture = study_folder() / f"silver_{size}.json"
    silver = silver_trees_of(size)
    write_json(
        mixture,
        {
            "corpora": [
                {**MEMBER, "data_dir": str(treebank_of(size))},
                {**MEMBER, "data_dir": str(silver), "prefixes": ["silver", None, None]},
            ]
        },
    )
    return ["--corpus=mixture", f"--mixture={mixture}"]


def _train(name, size, corpus_arguments, **more):
    """Train a parser, if that is not done yet, by what else decides what it learns. Gives its
    folder.
    """
    run = study_folder() / name
    recipe = shlex.split(RECIPE.value) + BY_BEST_EPOCH * (0 < size < BEST_BELOW.value)
    settings = {"recipe": expand_flagfiles(recipe), "data_dir": _data_dir(), **more}
    keep_settings(run, settings)
    if (run / "evaluation.json").is_file():
        return run
    command = [
        *(sys.executable, "-m", "keras_transformer.train", *recipe),
        *(*corpus_arguments(), f"--model_dir={run}", f"--export_dir={run}_saved"),
    ]
    print(shlex.join(command), flush=True)
    status = subprocess.run(command).returncode
    if status:
        raise SystemExit(f"{run}: its training failed with exit status {status}; see above.")
    if not (run / "evaluation.json").is_file():
        raise SystemExit(
            f"{run} is not trained to its end: it was stopped. The same command again goes on."
        )
    return run


def _data_dir():
    return str(pathlib.Path(DATA_DIR.value).expanduser().resolve())


def drawn(count: int, size: int) -> list[int]:
    """The numbers of the trees of a size, in order.

    Args:
        count: of all trees.
        size: at most as many.
    """
    if size > count:
        raise SystemExit(f"--sizes, --silver: the treebank has {count} trees, fewer than {size}.")
    return sorted(np.random.default_rng(SEED).permutation(count)[:size].tolist())


def treebank_of(size: int) -> pathlib.Path:
    """The folder of a treebank with so many trees to train on; 0: with all."""
    from pipelines.corpora import Treebank

    if not size:
        return pathlib.Path(_data_dir())
    folder = study_folder() / f"treebank_{size}"
    treebank = Treebank(data_dir=DATA_DIR.value)
    trees = treebank.trees("train")
    write_trees(folder / "train.trees.gz", [trees[number] for number in drawn(len(trees), size)])
    # An epoch of few trees is short: more to validate would take longer than the epoch.
    write_trees(folder / "valid.trees.gz", treebank.trees("valid")[:size])
    write_trees(folder / "test.trees.gz", treebank.trees("test"))
    return folder


def silver_trees_of(size: int) -> pathlib.Path:
    """The folder of silver.trees: what the parser of a size says of all sentences that it has not
    learned from. Their own trees are thrown away.
    """
    from pipelines.corpora import Treebank, treebank

    parser = trained(size)
    trees = Treebank(data_dir=str(DATA_DIR.value)).trees("train")
    others = sorted({*range(len(trees))} - {*drawn(len(trees), size)})
    sentences = [treebank.words_of(trees[number]) for number in others]
    folder = study_folder() / f"silver_{size}"
    settings = {"weights": weights_in(parser), "data_dir": _data_dir(), **SILVER_SEARCH}
    load = loader(parser, BATCH_TOKENS, **SILVER_SEARCH)
    found = parsed_in_parts(folder / "parsed.json", settings, sentences, load)
    write_trees(folder / "silver.trees.gz", found["trees"])
    return folder


def write_trees(path: pathlib.Path, trees: Iterable) -> None:
    """Write a file of trees, .gz."""
    text = "".join(f"{tree}\n" for tree in trees).encode()
    write_whole(path, lambda temporary: temporary.write_bytes(gzip.compress(text, mtime=0)))


def check() -> None:
    """Refuse flags that make no sense, before anything is trained."""
    if not DATA_DIR.value:
        raise app.UsageError("--sizes and --silver need --data_dir, the folder of a treebank.")
    if "0" in SILVER.value:
        raise app.UsageError("--silver=0: a parser of all trees leaves no sentence to parse.")
