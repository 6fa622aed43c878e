"""What learning to guess hidden pieces is worth (Devlin et al. 2019, section 5.1): a classifier of
intents, fine-tuned, against the same net from nothing, on 1,000 labelled sentences.

`python -m benchmarks.bert_intents` trains bert.flags for some minutes on both cores; and from it,
some minutes more, on the sentences of the training templates without their labels ("adapted"). Then
it trains bert_intents.flags from nothing, from the first and from the second, all with the same
vocabulary, each run on one core and side by side. Each start has the rate of learning that is best
on the validation templates with the first seed. It prints the mean accuracy over the seeds on
templates that no run has seen. What is done is not done again, what was interrupted is resumed, and
what was kept with other flags is refused. The command

    python -m benchmarks.bert_intents --score=FOLDER

scores one run, in a process of its own.
"""

import json
import pathlib
import statistics

from absl import app, flags

from benchmarks.kept import keep_settings
from benchmarks.side_by_side import run_alone, side_by_side, train_alone
from benchmarks.tables import print_table
from pipelines import corpora
from pipelines.whole_files import write_json

SCORE = flags.DEFINE_string("score", None, "Folder of a run: score it, in this very process.")
RUN_DIR = flags.DEFINE_string("run_dir", "runs/bert_intents", "Folder of the runs.")
SEEDS = flags.DEFINE_list("seeds", ["1", "2", "3"], "Of weights, order and labelled sentences.")
RATES = flags.DEFINE_list("rates", ["0.1", "0.3"], "Scales of the learning rate to choose from.")
MINUTES = flags.DEFINE_float("minutes", 12, "Minutes of learning to guess pieces.")
ADAPTING = flags.DEFINE_float("adapting_minutes", 4, "Minutes of the same on the sentences.")
EPOCHS = flags.DEFINE_integer("epochs", 20, "Passes over the labelled sentences.")
EXAMPLES = flags.DEFINE_integer("examples", 1000, "Labelled sentences.")
SIZES = flags.DEFINE_string("sizes", "", "Further flags of all trainings, such as sizes.")
CLASSIFIER = flags.DEFINE_string(
    "classifier_flags", "", "Further flags of the classifiers alone, such as --pooling=first."
)

# Of each start, the flag by which it takes something from a run that learned to guess.
STARTS = {
    "from nothing": ("vocabulary_from", "guesser"),
    "fine-tuned": ("init_from", "guesser"),
    "adapted and fine-tuned": ("init_from", "adapted"),
}


def main(_):
    if SCORE.value:
        score(pathlib.Path(SCORE.value))
        return
    folder = pathlib.Path(RUN_DIR.value)
    guesser = folder / "guesser"
    of_guesser = {"minutes": MINUTES.value, "sizes": SIZES.value}
    run(guesser, of_guesser, ["--flagfile=bert.flags", f"--max_minutes={MINUTES.value}"])
    run(
        folder / "adapted",
        {**of_guesser, "adapting_minutes": ADAPTING.value},
        [
            *("--flagfile=bert.flags", "--corpus=intents", f"--init_from={guesser}"),
            f"--max_minutes={ADAPTING.value}",
        ],
    )
    first, *others = SEEDS.value
    found = train_all(folder, [(start, rate, first) for start in STARTS for rate in RATES.value])
    best = {
        start: max(RATES.value, key=lambda rate: found[start, rate, first]["valid"])
        for start in STARTS
    }
    found |= train_all(folder, [(start, best[start], seed) for seed in others for start in STARTS])
    report(found, best)


def train_all(folder, jobs):
    """The scores of all jobs, each a start, a rate and a seed."""
    scores = side_by_side(lambda core, *job: train(folder, core, *job), jobs)
    return dict(zip(jobs, scores, strict=True))


def run(path, settings, arguments, core=None):
    """Train, on one core or on all; resume where it was interrupted."""
    keep_settings(path, settings)
    train_alone(path, [*arguments, *SIZES.value.split(), "--norelease"], core)


def train(folder, core, start, rate, seed):
    """Train and score a classifier on one core, if that is not done yet."""
    path = folder / f"{start.replace(' ', '_')}-{rate}-{seed}"
    flag, origin = STARTS[start]
    settings = {
        "minutes": MINUTES.value,
        "adapting_minutes": ADAPTING.value,
        "sizes": SIZES.value,
        "classifier_flags": CLASSIFIER.value,
        "epochs": EPOCHS.value,
        "examples": EXAMPLES.value,
    }
    arguments = [
        "--flagfile=bert_intents.flags",
        f"--{flag}={folder / origin}",
        f"--labelled_examples={EXAMPLES.value}",
        f"--learning_rate_scale={rate}",
        f"--seed={seed}",
        f"--max_epochs={EPOCHS.value}",
        "--max_minutes=30",
        *CLASSIFIER.value.split(),
    ]
    keep_settings(path, settings)
    if not (path / "score.json").is_file():
        run(path, settings, arguments, core)
        run_alone(path, ["benchmarks.bert_intents", f"--score={path}"], core)
    return json.loads((path / "score.json").read_text(encoding="utf-8"))


def score(path):
    """Write the accuracies of a run on the validation and the test templates."""
    from keras_transformer.evaluation import label_score
    from keras_transformer.inference.text_reader import TextReader
    from keras_transformer.runs.folder import RunFolder
    from keras_transformer.tasks.labelling.task import Classification

    reader = TextReader.of(Classification.reload(RunFolder(path), {"precision": "float32"}))
    corpus = corpora.load("intents")
    accuracies = {
        name: label_score.measure(reader.labels(split.sources), split.targets)["accuracy"]
        for name, split in {"valid": corpus.valid, "test": corpus.test}.items()
    }
    write_json(path / "score.json", accuracies)


def report(found, best):
    """Print each start's accuracies at its best rate, and what it has over nothing."""
    rows = []
    means = {}
    for start, rate in best.items():
        scores = [100 * found[start, rate, seed]["test"] for seed in SEEDS.value]
        means[start] = statistics.mean(scores)
        each = ", ".join(f"{score:.1f}" for score in scores)
        gain = means[start] - means["from nothing"]
        rows.append((start, rate, f"{means[start]:.1f}", each, f"{gain:+.1f}"))
    print_table(("start", "rate", "accuracy, %", "each seed", "gain"), rows)


if __name__ == "__main__":
    app.run(main)
