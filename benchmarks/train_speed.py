"""Training speed beside the peers', and beside the processor's own limit: `python -m
benchmarks.train_speed --data_dir=multi30k`.

Every system trains on the same batches of ids, in a process of its own; they take turns, round by
round (A B C A B C ...), and a number is the median of the rounds. The first round compiles and
warms up, and does not count. tok/s counts source and target tokens, no padding. Run it on a quiet
machine: "cores busy" below the number of cores by more than a tenth or two means that something
else ran, or that the system waits for itself. All processes of a size stay in memory (base: about 2
GB each).
"""

import itertools
import pathlib
import statistics
import tempfile

import numpy as np
from absl import app, flags

from benchmarks import batches, environments, input_speed, our_training, training_tables
from benchmarks.sizes import SIZES, training_flops
from benchmarks.tables import print_table
from benchmarks.turns import Trainer
from pipelines.vocabularies.vocabulary import learn

OURS = "benchmarks.trainers.ours"
TORCH = "benchmarks.trainers.torch_transformer"
OPENNMT = "benchmarks.trainers.opennmt_tf"
# By name: module, then what its task says beside the sizes.
SYSTEMS = {
    "fit_float32": (OURS, {"precision": "float32", "by": "fit"}),
    "fit_bfloat16": (OURS, {"precision": "bfloat16", "by": "fit"}),
    "bare_float32": (OURS, {"precision": "float32", "by": "step"}),
    "bare_bfloat16": (OURS, {"precision": "bfloat16", "by": "step"}),
    "torch_float32": (TORCH, {"precision": "float32"}),
    "torch_bfloat16": (TORCH, {"precision": "bfloat16"}),
    "opennmt_float32": (OPENNMT, {"precision": "float32"}),
}
DATA_DIR = flags.DEFINE_string(
    "data_dir",
    None,
    "Folder of Multi30k: train.*, val.*, test_2016_flickr.* in en and de.",
    required=True,
)
CHOSEN_SIZES = flags.DEFINE_list("sizes", list(SIZES), "Models: small, base.")
CHOSEN_SYSTEMS = flags.DEFINE_list("systems", list(SYSTEMS), "Which systems take turns.")
ROUNDS = flags.DEFINE_integer("rounds", 5, "Rounds that count.", lower_bound=1)
STEPS = flags.DEFINE_list(
    "steps",
    ["20", "6"],
    "Steps of a system in a round, for each size; the last serves for the rest.",
)
BATCH_TOKENS = flags.DEFINE_integer(
    "batch_tokens", 2048, "Tokens of an update on either side, without padding."
)
VOCABULARY_SIZE = flags.DEFINE_integer("vocabulary_size", 8000, "Pieces.")
PIECES = flags.DEFINE_list("pieces", ["base"], "Sizes whose step is taken apart.")
INPUT = flags.DEFINE_bool("input", True, "Measure the input pipeline alone.")
RECORDS = flags.DEFINE_string(
    "records",
    None,
    "Folder that pipelines.prepare.preparation filled: measure the input pipeline from there, too.",
)


class Size:
    """One size of model: its batches in a file, its systems, and what their rounds took."""

    def __init__(self, name, steps, pairs, vocabulary, folder):
        self.name = name
        self.steps = steps
        stream = our_training.batches(pairs, BATCH_TOKENS.value)
        self.batches = [
            (source, target)
            for (source, _), target, _ in itertools.islice(
                stream.arrays(), steps * (ROUNDS.value + 1)
            )
        ]
        batches.save(folder / f"{name}.npz", self.batches)
        vocabulary.save(folder / "vocabulary.model")
        self.folder = folder
        self.task = {
            "size": SIZES[name],
            "vocabulary_size": vocabulary.size,
            "batch_tokens": BATCH_TOKENS.value,
            "batches": str(folder / f"{name}.npz"),
            "data_dir": str(pathlib.Path(DATA_DIR.value).resolve()),
            "vocabulary": str(folder / "vocabulary.model"),
        }
        lengths = [tuple(np.count_nonzero(ids, axis=1) for ids in pair) for pair in self.batches]
        widths = [tuple(np.full(len(ids), ids.shape[1]) for ids in pair) for pair in self.batches]
        self.tokens, self.useful, self.padded = (
            self._by_round(values)
            for values in (
                [float(source.sum() + target.sum()) for source, target in lengths],
                [training_flops(SIZES[name], vocabulary.size, *pair) for pair in lengths],
                [training_flops(SIZES[name], vocabulary.size, *pair) for pair in widths],
            )
        )
        self.answers = {}
        self.unavailable = {}

    def _by_round(self, values):
        """Sums over the batches of each round that counts."""
        return np.array(values).reshape(-1, self.steps).sum(axis=1)[1:]

    def describe(self):
        positions = np.mean([[ids.size for ids in pair] for pair in self.batches], axis=0)
        padding = 1 - self.tokens.sum() / sum(
            ids.size for pair in self.batches[self.steps :] for ids in pair
        )
        work = self.useful.sum() / self.tokens.sum() / 1e6
        return (
            f"{positions[0]:,.0f} + {positions[1]:,.0f} positions a batch, {padding:.0%} of them "
            "padding; "
            f"{work:.1f} MFLOP to train a token, "
            f"{self.padded.sum() / self.tokens.sum() / 1e6:.1f} with the padding"
        )

    def run(self, chosen):
        """Let the systems take turns, and keep their answers."""
        trainers = {
            "peak": Trainer("benchmarks.trainers.matrix_product", {}, self.folder / "peak.log")
        }
        try:
            for name in chosen:
                trainers[name] = self._start(name)
            for name, trainer in trainers.items():
                if trainer and trainer.unavailable:
                    self.unavailable[name] = trainer.unavailable
            for number in range(ROUNDS.value + 1):
                for name in [name for name in trainers if name not in self.unavailable]:
                    answer = trainers[name].train(4 if name == "peak" else self.steps)
                    if "unavailable" in answer:
                        self.unavailable[name] = answer["unavailable"]
                    elif number:
                        self.answers.setdefault(name, []).append(answer)
                print(f"{self.name}: round {number} of {ROUNDS.value}", flush=True)
        finally:
            for trainer in filter(None, trainers.values()):
                trainer.close()

    def _start(self, name):
        module, of_system = SYSTEMS[name]
        interpreter = {}
        if module == OPENNMT:
            python, reason = environments.OPENNMT.find_or_make()
            if reason:
                self.unavailable[name] = reason
                return None
            interpreter = {"python": python}
        return Trainer(
            module,
            {**self.task, **of_system},
            self.folder / f"{self.name}_{name}.log",
            **interpreter,
        )

    def answered(self, name, what):
        """What a system answered, round by round."""
        return np.array([answer[what] for answer in self.answers[name]])

    def speeds(self, name):
        """Tokens a second, round by round."""
        return self.tokens / self.answered(name, "seconds")

    def ratio(self, of, over):
        """The median of the rounds' ratios; None if either did not run."""
        if (
            of in self.unavailable
            or over in self.unavailable
            or not {of, over} <= self.answers.keys()
        ):
            return None
        return statistics.median(self.speeds(of) / self.speeds(over))

    def share_of_peak(self, name, flops):
        return statistics.median(
            flops
            / self.answered(name, "seconds")
            / self.answered("peak", SYSTEMS[name][1]["precision"])
        )


def main(_):
    text = our_training.read_text(DATA_DIR.value)
    vocabulary = learn(text.sources + text.targets, VOCABULARY_SIZE.value)
    pairs = our_training.tokenize(text, vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        sizes = []
        for place, name in enumerate(CHOSEN_SIZES.value):
            steps = int(STEPS.value[min(place, len(STEPS.value) - 1)])
            sizes.append(Size(name, steps, pairs, vocabulary, pathlib.Path(folder)))
            print(f"{name}: {sizes[-1].describe()}", flush=True)
            sizes[-1].run(CHOSEN_SYSTEMS.value)
        columns = [
            "size",
            "system",
            "tok/s",
            "rounds",
            "cores busy",
            "x torch float32",
            "share of own peak",
            "with padding",
        ]
        print_table(
            columns,
            [row for size in sizes for row in training_tables.rows(size, CHOSEN_SYSTEMS.value)],
        )
        print_table(
            ["size", "goal", "measured", "least", ""],
            [row for size in sizes for row in training_tables.goals(size)],
        )
        for size in sizes:
            if size.name in PIECES.value:
                print_table(
                    ["piece", "float32 ms", "share", "bfloat16 ms", "share"],
                    training_tables.pieces(size),
                )
    if INPUT.value:
        speeds = input_speed.measure(text, vocabulary, BATCH_TOKENS.value, RECORDS.value)
        print_table(
            ["input pipeline alone", "tok/s"],
            [[name, f"{speed:,.0f}"] for name, speed in speeds.items()],
        )


if __name__ == "__main__":
    app.run(main)
