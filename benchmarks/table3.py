"""Table 3 of the paper (Vaswani et al. 2017, section 6.2): `python -m benchmarks.table3` builds the
model of each row and prints its parameters beside the paper's.

`--scale=small --data_dir=multi30k` also trains each row: half as many layers, widths a quarter of
the paper's, all else by the row's flag file, the same number of tokens for each. Printed are
perplexity, accuracy and BLEU of the development set, of the last weights: "no checkpoint
averaging". The rows of label smoothing show what section 5.4 says: it "hurts perplexity, [...] but
improves accuracy and BLEU score". A row that is done is not trained again, one that was interrupted
goes on.
"""

import json
import math
import os
import pathlib
import queue
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from absl import app, flags

from benchmarks.paper_table3 import BASE, PAPER, hyperparameters, small_scale
from benchmarks.tables import print_table
from pipelines.whole_files import write_json

SCALE = flags.DEFINE_enum("scale", "paper", ["paper", "small"], "Count parameters, or train too.")
DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of Multi30k: train.*, val.*, en and de.")
RUN_DIR = flags.DEFINE_string("run_dir", "runs/table3", "Where the runs lie.")
ROWS = flags.DEFINE_list("rows", list(PAPER), "Flag files to run, without .flags.")
SEEDS = flags.DEFINE_list("seeds", ["1", "2"], "Of the weights, dropout and order.")
UPDATES = flags.DEFINE_integer("updates", 2000, "Updates of a run.", lower_bound=1)
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 1024, "Tokens of an update on either side.")
ONE = flags.DEFINE_string("one", None, "ROW=SEED: score this run, in this very process.")

RECIPE = (
    *("--corpus=text_files", "--valid_prefix=val", "--test_prefix=val", "--vocabulary_size=4000"),
    *("--max_train_length=100", "--warmup_steps=400", "--learning_rate_scale=0.5"),
    *("--checkpoint_minutes=2", "--keep_checkpoints=1", "--average_checkpoints=1"),
    *("--validation_sentences=0", "--norelease"),
)


def folder_of(row, seed):
    return pathlib.Path(RUN_DIR.value) / f"{row.removeprefix('table3/')}-{seed}"


def train(row, seed, cores):
    """Train and score a run on one core, if that is not done yet."""
    folder = folder_of(row, seed)
    score = folder / "score.json"
    if not score.is_file():
        core = cores.get()
        values = {
            **small_scale(row),
            "data_dir": DATA_DIR.value,
            "batch_tokens": BATCH_TOKENS.value,
            "max_steps": UPDATES.value,
            "seed": seed,
            "model_dir": folder,
        }
        chosen = [f"--{name}={value}" for name, value in values.items()]
        recipe = ["keras_transformer.train", f"--flagfile={row}.flags", *RECIPE, *chosen]
        run_alone(folder, recipe, core)
        run_alone(
            folder, ["benchmarks.table3", f"--one={row}={seed}", f"--run_dir={RUN_DIR.value}"], core
        )
        cores.put(core)
    found = json.loads(score.read_text(encoding="utf-8"))
    print(row, seed, found, flush=True)
    return found


def run_alone(folder, command, core):
    """Run a module on one core; its output goes to the run's log."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{folder.name}.log", "a", encoding="utf-8") as log:
        subprocess.run(
            [sys.executable, "-m", *command],
            stdout=log,
            stderr=subprocess.STDOUT,
            check=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )


def score(row, seed):
    """Write what a trained run reaches on the development set."""
    from keras_transformer import Translator
    from keras_transformer.evaluation import bleu
    from keras_transformer.translator.held_out_text import held_out_text
    from pipelines.vocabulary import Vocabulary

    folder = folder_of(row, seed)
    translator = Translator.load(folder, beam_size=4, length_penalty=0.6)
    sources, targets = held_out_text(translator.description, str(folder), "valid")
    last = json.loads((folder / "history.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    vocabulary = Vocabulary.load(folder / "vocabulary.model")
    # The end of a sentence counts among the pieces, as in training, and among the words.
    pieces = vocabulary.tokenize(targets).flat_values.shape[0]
    words = sum(len(line.split()) + 1 for line in targets)
    nats = last["val_cross_entropy"]
    numbers = {
        "steps": last["step"],
        "perplexity": math.exp(nats),
        "perplexity_of_a_word": math.exp(nats * pieces / words),
        "accuracy": 100 * last["val_accuracy"],
        "bleu": bleu.score(translator.translate(sources), targets)["bleu"],
    }
    write_json(folder / "score.json", numbers)


def spread(values, digits):
    """Their mean, and of several half of what lies between the least and the greatest."""
    mean = f"{statistics.mean(values):.{digits}f}"
    half = (max(values) - min(values)) / 2
    return f"{mean} ± {half:.{digits}f}" if len(values) > 1 else mean


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
    counts = parameters()
    of_base = PAPER[BASE].millions
    rows = []
    for row in ROWS.value:
        ours = counts[row] - counts[BASE]
        theirs = PAPER[row].millions
        paper = ("", "") if theirs is None else (theirs, f"{theirs - of_base:+d}")
        rows.append((row, f"{counts[row]:.2f}", f"{ours:+.2f}", *paper))
    print_table(("row", "million parameters", "more than base", "paper", "more than base"), rows)


def print_results(found):
    """Print a line for each row, from {(row, seed): numbers}."""
    rows = []
    for row in ROWS.value:
        of_row = [found[row, seed] for seed in SEEDS.value]
        columns = {name: [numbers[name] for numbers in of_row] for name in of_row[0]}
        rows.append(
            (
                row,
                spread(columns["perplexity"], 2),
                spread(columns["perplexity_of_a_word"], 1),
                spread(columns["accuracy"], 1),
                spread(columns["bleu"], 2),
                PAPER[row].perplexity,
                PAPER[row].bleu,
            )
        )
    header = (
        "row",
        "PPL a piece",
        "PPL a word",
        "accuracy",
        "BLEU (dev)",
        "paper: PPL",
        "paper: BLEU",
    )
    print_table(header, rows)


def main(_):
    if ONE.value:
        row, _, seed = ONE.value.partition("=")
        score(row, seed)
        return
    if SCALE.value == "paper":
        print_parameters()
        return
    if not DATA_DIR.value:
        raise app.UsageError("--scale=small needs --data_dir, a folder of Multi30k.")
    cores = queue.SimpleQueue()
    every = sorted(os.sched_getaffinity(0))
    for core in every:
        cores.put(core)
    # All rows of a seed first: an interrupted table is whole for one seed.
    jobs = [(row, seed) for seed in SEEDS.value for row in ROWS.value]
    with ThreadPoolExecutor(len(every)) as pool:
        found = dict(zip(jobs, pool.map(lambda job: train(*job, cores), jobs), strict=True))
    print_results(found)


if __name__ == "__main__":
    app.run(main)
