"""What each part of a parser adds (Vaswani et al. 2017, section 6.3; Vinyals et al. 2015).

`python -m benchmarks.parsing_study --model_dir=runs/parsing_en` scores the test trees of a run's
treebank: by beams of 1, 4 and 21; mended alone, or by a search that is constrained to trees;
checkpoints averaged, or the last alone. It prints how many of the raw outputs are well formed, and
recall, precision and F1 by label. `--silver_model_dir=RUN` adds a parser that learned from silver
trees too.

`--sizes=1000,5000,0 --data_dir=TREES` adds F1 against the number of trees to learn from; 0 is all.
Each size is a training of its own, whose command is printed and run, in `--run_dir`. What is done
is not done again, and a training that was interrupted goes on.
"""

import collections
import functools
import gzip
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

from absl import app, flags

from benchmarks.tables import print_table
from pipelines.whole_files import write_json, write_whole

MODEL_DIR = flags.DEFINE_string("model_dir", None, "Run of --task=parsing.")
SILVER = flags.DEFINE_string("silver_model_dir", None, "Run that learned from silver trees too.")
SPLIT = flags.DEFINE_enum("split", "test", ["valid", "test"], "Split to parse.")
BEAMS = flags.DEFINE_list("beams", ["1", "4", "21"], "Beam sizes.")
LENGTH_PENALTY = flags.DEFINE_float("length_penalty", 0.3, "Exponent of the length penalty.")
SENTENCES = flags.DEFINE_integer("sentences", 0, "Number of first trees to parse; 0: all.")
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 1024, "Source tokens parsed at once.")
SIZES = flags.DEFINE_list("sizes", [], "Numbers of trees to train on; 0: all.")
DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of the treebank, for --sizes.")
RUN_DIR = flags.DEFINE_string("run_dir", "runs/parsing_study", "Where results and runs lie.")
RECIPE = flags.DEFINE_string(
    "recipe", "--flagfile=parsing_small.flags", "Flags of the trainings of --sizes."
)
LABELS = 15


def once(name, make):
    """What `make` gives, JSON, kept in a file of --run_dir."""
    path = pathlib.Path(RUN_DIR.value) / f"{name}.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, make())
    return json.loads(path.read_text(encoding="utf-8"))


def gold_of(description):
    from pipelines.corpora import gold_trees

    return gold_trees.trees(description["corpus"], SPLIT.value)[: SENTENCES.value or None]


def parsed(model, **options):
    """Trees, scores, the share of raw outputs that are well formed, and seconds."""
    from keras_transformer import Translator
    from keras_transformer.evaluation import parser_score
    from pipelines.corpora.treebank import words_of

    parser = Translator.load(model, **options)
    gold = gold_of(parser.description)
    leaves = parser.description["corpus"].get("tree_leaves") or "xx"
    sentences = [words_of(tree) for tree in gold]
    parser.translate_in_detail(sentences[:1])
    start = time.perf_counter()
    # In detail, for the symbols as the model wrote them.
    found = parser.translate_in_detail(
        sentences, batch_tokens=BATCH_TOKENS.value, batches_at_once=len(os.sched_getaffinity(0))
    )
    best = [hypotheses[0] for hypotheses in found]
    seconds = time.perf_counter() - start
    trees = [one.text for one in best]
    return {
        **parser_score.measure(trees, gold),
        "well_formed": sum(_is_well_formed(one, leaves) for one in best),
        "seconds": seconds,
        "trees": trees,
    }


def _is_well_formed(hypothesis, leaves):
    """Whether mending has nothing to do: the symbols of the tree are those that were written."""
    from pipelines.linearization import to_symbols
    from pipelines.trees import parse

    pieces = "".join(hypothesis.pieces).removesuffix("</s>")
    text = re.sub(r"(?:<0x[0-9A-F]{2}>)+", _character, pieces)
    return text.replace("▁", " ").strip(" ").split(" ") == to_symbols(
        parse(hypothesis.text), leaves
    )


def _character(match):
    """What pieces of single bytes stand for."""
    return bytes.fromhex(re.sub("<0x|>", "", match[0])).decode(errors="replace")


def line(name, found):
    sentences = found["all"]["sentences"]
    return (
        name,
        f"{found['short']['f1']:.2f}",
        f"{found['all']['f1']:.2f}",
        f"{found['all']['complete']:.1f}",
        f"{100 * found['well_formed'] / max(sentences, 1):.1f} %",
        f"{sentences / found['seconds']:.1f}",
    )


HEADER = ("parser", "F1, at most 40 words", "F1", "complete", "well formed", "sentences/s")


def systems():
    """By name: the model and its options. The first is the one that others are compared with."""
    from keras_transformer.training import checkpoint

    run = MODEL_DIR.value
    last = checkpoint.checkpoints(pathlib.Path(run) / "checkpoints")[-1]
    found = {}
    for beam in map(int, BEAMS.value):
        # Greedy search has no length penalty.
        options = {"beam_size": beam}
        options |= {"length_penalty": LENGTH_PENALTY.value} if beam > 1 else {}
        found[f"beam {beam}, mended"] = (run, options)
        found[f"beam {beam}, constrained"] = (run, {**options, "constrained": True})
    found["beam 1, mended, last checkpoint alone"] = (str(last), {"beam_size": 1})
    if SILVER.value:
        found["beam 1, mended, with silver trees"] = (SILVER.value, {"beam_size": 1})
    return found


def file_of(name):
    """The name of the file that keeps what a system reaches on these trees."""
    trees = f"{SPLIT.value}_{SENTENCES.value or 'all'}"
    run = pathlib.Path(MODEL_DIR.value).name
    return "_".join([run, trees, *name.replace(",", "").split()])


def print_systems():
    results = {
        name: once(file_of(name), functools.partial(parsed, model, **options))
        for name, (model, options) in systems().items()
    }
    print_table(HEADER, [line(name, found) for name, found in results.items()])
    return next(iter(results.values()))


def print_labels(found):
    """Recall, precision and F1 of each label, and what it was taken for."""
    from keras_transformer.evaluation.parser_score import with_leaves_of
    from keras_transformer.evaluation.parseval import brackets
    from keras_transformer.runs.folder import RunFolder
    from pipelines.trees import parse

    gold = gold_of(RunFolder(MODEL_DIR.value).read_description())
    counts = collections.defaultdict(collections.Counter)
    confused = collections.defaultdict(collections.Counter)
    for right, text in zip(gold, found["trees"], strict=True):
        wanted = collections.Counter(brackets(right))
        given = collections.Counter(brackets(with_leaves_of(right, parse(text))))
        for name, bag in (("gold", wanted), ("test", given), ("matched", wanted & given)):
            for bracket, count in bag.items():
                counts[bracket.label][name] += count
        left = collections.defaultdict(list)
        for bracket in (given - wanted).elements():
            left[bracket[1:]].append(bracket.label)
        for bracket in (wanted - given).elements():
            labels = left[bracket[1:]]
            confused[bracket.label][labels.pop() if labels else "nothing"] += 1
    frequent = sorted(counts, key=lambda label: -counts[label]["gold"])[:LABELS]
    print_table(
        ("label", "in gold", "recall", "precision", "F1", "missed, most often for"),
        [_of_label(label, counts[label], confused[label]) for label in frequent],
    )


def _of_label(label, count, confused):
    recall = 100 * count["matched"] / max(count["gold"], 1)
    precision = 100 * count["matched"] / max(count["test"], 1)
    f1 = 2 * recall * precision / (recall + precision) if count["matched"] else 0.0
    told = ", ".join(f"{other} {number}" for other, number in confused.most_common(3))
    return (label, count["gold"], *(f"{figure:.1f}" for figure in (recall, precision, f1)), told)


def print_sizes():
    """F1 against the number of trees: a training for each that is not done yet."""
    rows = []
    for size in map(int, SIZES.value):
        name = str(size) if size else "all"
        run = pathlib.Path(RUN_DIR.value).resolve() / f"trees_{name}"
        if not (run / "evaluation.json").is_file():
            train(size, run)
        found = json.loads((run / "evaluation.json").read_text(encoding="utf-8"))
        figures = (found["short"]["f1"], found["all"]["f1"], found["all"]["complete"])
        rows.append((name, found["beam_size"], *figures))
    print_table(("trees", "beam", "F1, at most 40 words", "F1", "complete"), rows)


def train(size, run):
    command = [
        *(sys.executable, "-m", "keras_transformer.train", *shlex.split(RECIPE.value)),
        *(f"--data_dir={treebank_of(size)}", f"--model_dir={run}", f"--export_dir={run}_saved"),
    ]
    print(shlex.join(command), flush=True)
    subprocess.run(command, check=True)


def treebank_of(size):
    """The folder of a treebank with the first trees alone to train on, or all."""
    from pipelines.corpora import treebank

    if not size:
        return pathlib.Path(DATA_DIR.value).resolve()
    folder = pathlib.Path(RUN_DIR.value).resolve() / f"treebank_{size}"
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "valid", "test"):
        trees = treebank.trees(DATA_DIR.value, split)[: size if split == "train" else None]
        text = "".join(f"{tree}\n" for tree in trees).encode()
        write_whole(
            folder / f"{split}.trees.gz",
            lambda path, text=text: path.write_bytes(gzip.compress(text, mtime=0)),
        )
    return folder


def main(_):
    if SIZES.value:
        if not DATA_DIR.value:
            raise app.UsageError("--sizes needs --data_dir, the folder of a treebank.")
        print_sizes()
    if MODEL_DIR.value:
        from keras_transformer.startup import spread_over_cores

        spread_over_cores()
        print_labels(print_systems())


if __name__ == "__main__":
    app.run(main)
