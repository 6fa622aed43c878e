"""Trainings on Multi30k that a table compares (Vaswani et al. 2017, tables 2 and 3), one after the
other, and their scores on the development set: `python -m benchmarks.paper.small_runs
--data_dir=multi30k --run="post --flagfile=tiny.flags --norm=post" --run="pre ..."`, where each run
is a name and flags of `train`.

Each sees the same number of tokens. What counts are the last weights: "no checkpoint averaging". A
run that is done is not trained again, one that was interrupted goes on; what SIGTERM stops is saved
first. `--kept=FILE` keeps the scores of runs whose folders are gone, so that a table can be made in
several sittings. Scores of other flags, of another text or in another arithmetic (a processor may
multiply in bfloat16 or not) are not taken.
"""

import hashlib
import json
import math
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence

from absl import app, flags

from benchmarks.tables import keep_settings, print_table
from keras_transformer.flagfiles import expand_flagfiles
from keras_transformer.training.fit import dtype_policy
from pipelines.line_files import existing_folder, locate, read_lines
from pipelines.whole_files import write_json

DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of Multi30k: train.*, val.*, en and de.")
SEEDS = flags.DEFINE_list("seeds", ["1", "2"], "Of the weights, dropout and order.")
KEPT = flags.DEFINE_string("kept", None, "JSON file of scores, which new ones are added to.")
UPDATES = flags.DEFINE_integer("updates", 2000, "Updates of a run.", lower_bound=1)
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 1024, "Tokens of an update on either side.")
RUN = flags.DEFINE_multi_string("run", [], "Of each run: its name, and flags of `train`.")

RECIPE = (
    *("--corpus=text_files", "--valid_prefix=val", "--test_prefix=val", "--vocabulary_size=4000"),
    *("--max_train_length=100", "--warmup_steps=400", "--learning_rate_scale=0.5"),
    *("--checkpoint_minutes=2", "--keep_checkpoints=1", "--average_checkpoints=1"),
    *("--validation_sentences=0", "--norelease"),
)
# What tables show of scores: the heads of the columns, and digits by what `score` calls them.
HEADS = ("PPL a piece", "PPL a word", "accuracy", "BLEU (dev)")
DIGITS = {"perplexity": 2, "perplexity_of_a_word": 1, "accuracy": 1, "bleu": 2}


def train_all(
    run_dir: str | os.PathLike, arguments: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], dict[str, float]]:
    """Train and score runs.

    Args:
        run_dir: the folder of their folders.
        arguments: what comes after `train` for each, by its name: flag files, and flags that are
            not in `RECIPE`.

    Returns:
        The results of `score`, by name and seed.
    """
    if not DATA_DIR.value:
        raise app.UsageError("--data_dir is missing: a folder of Multi30k.")
    # All runs of a seed first: an interrupted table is whole for one seed.
    jobs = [(name, seed) for seed in SEEDS.value for name in arguments]
    folder = pathlib.Path(run_dir)
    return {
        (name, seed): train(folder / f"{name}-{seed}", arguments[name], seed) for name, seed in jobs
    }


def settings_of(arguments: Sequence[str], seed: str) -> dict:
    """The settings that scores depend on; "flags" is a digest that includes those of flag files."""
    flags_of_run = [flag for flag in _flags(arguments, seed) if not flag.startswith("--data_dir=")]
    return {
        "arithmetic": dtype_policy("auto"),
        "flags": _digest("\n".join(expand_flagfiles(flags_of_run)).encode()),
        "steps": UPDATES.value,
        "batch_tokens": BATCH_TOKENS.value,
        "text": text_of(DATA_DIR.value),
    }


def text_of(data_dir: str | os.PathLike) -> str:
    """What tells the text of one folder from another's, wherever it lies: a digest of its lines."""
    folder = existing_folder(data_dir)
    files = [locate(folder, f"{name}.{side}") for name in ("train", "val") for side in ("en", "de")]
    return _digest("\0".join("\n".join(read_lines(path)) for path in files).encode())


def _digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


def train(folder, arguments, seed):
    """Train and score a run, if that is not done yet."""
    path = folder / "score.json"
    settings = settings_of(arguments, seed)
    scores = _kept_scores().get(folder.name, {})
    if scores.items() >= settings.items():
        return scores
    # Before it is trained, so that another machine cannot go on with it in its own arithmetic.
    keep_settings(folder, settings)
    if not path.is_file():
        train_to_the_end(folder, _flags(arguments, seed))
        write_json(path, score(folder))
    scores = {**json.loads(path.read_text(encoding="utf-8")), **settings}
    print(folder.name, scores, flush=True)
    if KEPT.value:
        write_json(pathlib.Path(KEPT.value), {**_kept_scores(), folder.name: scores})
    return scores


def train_to_the_end(folder: pathlib.Path, arguments: Sequence[str]) -> None:
    """Train a run, or resume it; what it prints goes to `<folder>.log`.

    Raises:
        SystemExit: if it fails, or was stopped by SIGTERM, which is no failure of the training.
    """
    path = folder.with_name(f"{folder.name}.log")
    command = [sys.executable, "-m", "keras_transformer.train", *arguments, f"--model_dir={folder}"]
    with open(path, "a", encoding="utf-8") as log:
        process = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT)
    if process.returncode:
        raise SystemExit(f"the training of {folder} failed: see the end of {path}.")
    if not (folder / "averaged.npz").is_file():
        raise SystemExit(
            f"{folder} is not trained to its end: it was stopped. The same command again goes on."
        )


def _kept_scores():
    """All scores of the file --kept, by the names of the runs' folders."""
    path = pathlib.Path(KEPT.value or "")
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _flags(arguments, seed):
    """Flag files first, which `RECIPE` overrides, and what a run says for itself last."""
    values = {
        "data_dir": DATA_DIR.value,
        "batch_tokens": BATCH_TOKENS.value,
        "max_steps": UPDATES.value,
        "seed": seed,
    }
    flag_files = [flag for flag in arguments if flag.startswith("--flagfile=")]
    own = [flag for flag in arguments if flag not in flag_files]
    return [*flag_files, *RECIPE, *own, *(f"--{name}={value}" for name, value in values.items())]


def last_weights(folder: pathlib.Path) -> pathlib.Path:
    """The checkpoint of the end of a run's training. The weights that it exports may be older: only
    the checkpoints of the minutes are averaged.
    """
    from keras_transformer.training import checkpoint

    return checkpoint.read_newest(folder / "checkpoints")[0]


def score(folder: pathlib.Path) -> dict[str, float]:
    """What a trained run reaches on the development set."""
    from keras_transformer import Translator
    from keras_transformer.evaluation import metrics
    from keras_transformer.inference.held_out_text import held_out_text
    from pipelines import vocabularies

    translator = Translator.load(last_weights(folder), beam_size=4, length_penalty=0.6)
    sources, targets = held_out_text(translator.description, str(folder), "valid")
    last = json.loads((folder / "history.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    # The end of a sentence counts among the pieces, as in training, and among the words.
    pieces = vocabularies.load(folder).target.tokenize(targets).flat_values.shape[0]
    words = sum(len(line.split()) + 1 for line in targets)
    nats = last["val_cross_entropy"]
    return {
        "perplexity": math.exp(nats),
        "perplexity_of_a_word": math.exp(nats * pieces / words),
        "accuracy": 100 * last["val_accuracy"],
        "bleu": metrics.score(translator.translate(sources), targets)["bleu"],
    }


def spreads(scores: Mapping[tuple[str, str], Mapping[str, float]], name: str) -> list[str]:
    """Cells of a table, in the order of `HEADS`: the mean over the seeds of a run, and with several
    seeds half the distance between the least and the greatest value.

    Args:
        scores: what `train_all` returned.
        name: of the run.
    """
    cells = []
    for metric, digits in DIGITS.items():
        values = [scores[name, seed][metric] for seed in SEEDS.value]
        half = (max(values) - min(values)) / 2
        mean = f"{statistics.mean(values):.{digits}f}"
        cells.append(f"{mean} ± {half:.{digits}f}" if len(values) > 1 else mean)
    return cells


def main(_):
    arguments = {name: own for name, *own in map(shlex.split, RUN.value)}
    scores = train_all("runs/small", arguments)
    print_table(("run", *HEADS), [(name, *spreads(scores, name)) for name in arguments])


if __name__ == "__main__":
    app.run(main)
