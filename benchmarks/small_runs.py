"""Trainings on Multi30k that tables compare (Vaswani et al. 2017, tables 2 and 3), each on one core
and side by side, and their scores on the development set.

Each sees the same number of tokens. What counts are the last weights: "no checkpoint averaging". A
run that is done is not trained again, one that was interrupted goes on. `--kept=FILE` keeps the
scores of runs whose folders are gone, so that a table can be made in several sittings. The command

    python -m benchmarks.small_runs --score=FOLDER

scores one, in a process of its own.
"""

import json
import math
import os
import pathlib
import queue
import statistics
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from absl import app, flags

from pipelines.whole_files import write_json

SCORE = flags.DEFINE_string("score", None, "Folder of a run: score it, in this very process.")
DATA_DIR = flags.DEFINE_string("data_dir", None, "Folder of Multi30k: train.*, val.*, en and de.")
SEEDS = flags.DEFINE_list("seeds", ["1", "2"], "Of the weights, dropout and order.")
KEPT = flags.DEFINE_string("kept", None, "JSON file of scores, which new ones are added to.")
UPDATES = flags.DEFINE_integer("updates", 2000, "Updates of a run.", lower_bound=1)
BATCH_TOKENS = flags.DEFINE_integer("batch_tokens", 1024, "Tokens of an update on either side.")

RECIPE = (
    *("--corpus=text_files", "--valid_prefix=val", "--test_prefix=val", "--vocabulary_size=4000"),
    *("--max_train_length=100", "--warmup_steps=400", "--learning_rate_scale=0.5"),
    *("--checkpoint_minutes=2", "--keep_checkpoints=1", "--average_checkpoints=1"),
    *("--validation_sentences=0", "--norelease"),
)
# Runs side by side add to the file --kept one after the other.
_KEEPING = threading.Lock()


def train_all(
    run_dir: str | os.PathLike, arguments: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], dict[str, float]]:
    """Train and score runs, as many at once as there are cores.

    Args:
        run_dir: the folder of their folders.
        arguments: what stands behind `train` for each, by its name: flag files, and flags that are
            not in `RECIPE`.

    Returns:
        What `score` found, by name and seed.
    """
    if not DATA_DIR.value:
        raise app.UsageError("--data_dir is missing: a folder of Multi30k.")
    cores = queue.SimpleQueue()
    every = sorted(os.sched_getaffinity(0))
    for core in every:
        cores.put(core)
    # All runs of a seed first: an interrupted table is whole for one seed.
    jobs = [(name, seed) for seed in SEEDS.value for name in arguments]

    def train_one(job):
        return train(folder_of(run_dir, *job), arguments[job[0]], job[1], cores)

    with ThreadPoolExecutor(len(every)) as pool:
        return dict(zip(jobs, pool.map(train_one, jobs), strict=True))


def folder_of(run_dir: str | os.PathLike, name: str, seed: str) -> pathlib.Path:
    """The folder of a run."""
    return pathlib.Path(run_dir) / f"{name}-{seed}"


def _is_asked(found):
    """Whether scores are of as many updates of the size that the flags say."""
    return (found.get("steps"), found.get("batch_tokens")) == (UPDATES.value, BATCH_TOKENS.value)


def train(folder, arguments, seed, cores):
    """Train and score a run on one core, if that is not done yet."""
    scores = folder / "score.json"
    found = _kept().get(folder.name, {})
    if _is_asked(found):
        return found
    if not scores.is_file():
        core = cores.get()
        try:
            run_alone(folder, ["keras_transformer.train", *_flags(folder, arguments, seed)], core)
            run_alone(folder, ["benchmarks.small_runs", f"--score={folder}"], core)
        finally:
            cores.put(core)
    found = json.loads(scores.read_text(encoding="utf-8"))
    if not _is_asked(found):
        raise ValueError(
            f"{scores} has {found.get('steps')} updates of {found.get('batch_tokens')} tokens, not "
            f"{UPDATES.value} of {BATCH_TOKENS.value}. Name another --run_dir."
        )
    print(folder.name, found, flush=True)
    with _KEEPING:
        if KEPT.value:
            write_json(pathlib.Path(KEPT.value), {**_kept(), folder.name: found})
    return found


def _kept():
    """All scores of the file --kept, by the names of the runs' folders."""
    path = pathlib.Path(KEPT.value or "")
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _flags(folder, arguments, seed):
    """Flag files first, which `RECIPE` overrides, and what a run says for itself last."""
    values = {
        "data_dir": DATA_DIR.value,
        "batch_tokens": BATCH_TOKENS.value,
        "max_steps": UPDATES.value,
        "seed": seed,
        "model_dir": folder,
    }
    flag_files = [one for one in arguments if one.startswith("--flagfile=")]
    own = [one for one in arguments if one not in flag_files]
    return [*flag_files, *RECIPE, *own, *(f"--{name}={value}" for name, value in values.items())]


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


def score(folder: pathlib.Path) -> None:
    """Write what a trained run reaches on the development set, and what it cost, if it says so."""
    from keras_transformer import Translator
    from keras_transformer.evaluation import bleu
    from keras_transformer.translator.held_out_text import held_out_text
    from pipelines import vocabularies

    translator = Translator.load(folder, beam_size=4, length_penalty=0.6)
    sources, targets = held_out_text(translator.description, str(folder), "valid")
    last = json.loads((folder / "history.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    # The end of a sentence counts among the pieces, as in training, and among the words.
    pieces = vocabularies.load(folder).target.tokenize(targets).flat_values.shape[0]
    words = sum(len(line.split()) + 1 for line in targets)
    nats = last["val_cross_entropy"]
    numbers = {
        "steps": last["step"],
        "batch_tokens": translator.description["training"]["batch_tokens"],
        "perplexity": math.exp(nats),
        "perplexity_of_a_word": math.exp(nats * pieces / words),
        "accuracy": 100 * last["val_accuracy"],
        "bleu": bleu.score(translator.translate(sources), targets)["bleu"],
    }
    cost = folder / "cost.json"
    if cost.is_file():
        told = json.loads(cost.read_text(encoding="utf-8"))
        numbers.update(minutes=told["seconds"] / 60, operations=told["counted"])
    write_json(folder / "score.json", numbers)


def spreads(
    found: Mapping[tuple[str, str], Mapping[str, float]], name: str, digits: Mapping[str, int]
) -> list[str]:
    """Cells of a table: numbers of a run's seeds, each with so many digits.

    Args:
        found: what `train_all` returned.
        name: of the run.
        digits: by what `score` calls the number.
    """
    of_run = [found[name, seed] for seed in SEEDS.value]
    return [
        spread([numbers[what] for numbers in of_run], number) for what, number in digits.items()
    ]


def spread(values: Sequence[float], digits: int) -> str:
    """Their mean, and of several half of what lies between the least and the greatest."""
    mean = f"{statistics.mean(values):.{digits}f}"
    half = (max(values) - min(values)) / 2
    return f"{mean} ± {half:.{digits}f}" if len(values) > 1 else mean


def main(_):
    if not SCORE.value:
        raise app.UsageError("--score is missing: the folder of a run.")
    score(pathlib.Path(SCORE.value))


if __name__ == "__main__":
    app.run(main)
