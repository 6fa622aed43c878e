"""Training speed of a small GPT beside torch's own layers: `python -m
benchmarks.language_model_speed`.

Six layers, d_model 256, d_ff 1,024, 8 heads, 8,000 pieces, norm before each sublayer, GELU, biases,
learned positions, one table for embeddings and logits, Adam, float32. Torch's is
`nn.TransformerEncoder` with a causal mask, in eager mode. Both train on the same ids, each in a
process of its own; they take turns, round by round, and a number is the median of the rounds. The
first round compiles and warms up, and does not count. Run it on a quiet machine.
"""

import pathlib
import statistics
import tempfile

from absl import app, flags

from benchmarks.tables import print_table
from benchmarks.turns import Trainer

SYSTEMS = {
    "ours": "benchmarks.trainers.our_language_model",
    "torch": "benchmarks.trainers.torch_language_model",
}
SIZE = {
    "vocabulary_size": 8000,
    "num_layers": 6,
    "d_model": 256,
    "d_ff": 1024,
    "num_heads": 8,
    "max_positions": 512,
}
ROUNDS = flags.DEFINE_integer("rounds", 5, "Rounds that count.", lower_bound=1)
STEPS = flags.DEFINE_integer("steps", 10, "Updates of a system in a round.", lower_bound=1)
SHAPES = flags.DEFINE_list("shapes", ["32x64", "8x256"], "Texts in a batch, x, their length.")


def measure(batch, length, folder):
    """Seconds of each round, by system."""
    task = {"size": SIZE, "batch": batch, "length": length}
    trainers = {
        name: Trainer(module, task, folder / f"{name}.log") for name, module in SYSTEMS.items()
    }
    found = {name: [] for name in SYSTEMS}
    try:
        for number in range(ROUNDS.value + 1):
            for name, trainer in trainers.items():
                answer = trainer.train(STEPS.value)
                if "unavailable" in answer:
                    raise RuntimeError(f"{name}: {answer['unavailable']}")
                if number:
                    found[name].append(answer["seconds"])
    finally:
        for trainer in trainers.values():
            trainer.close()
    return found


def main(_):
    rows = []
    for shape in SHAPES.value:
        batch, length = map(int, shape.split("x"))
        with tempfile.TemporaryDirectory() as folder:
            seconds = measure(batch, length, pathlib.Path(folder))
        tokens = batch * length * STEPS.value
        ratios = [
            theirs / ours for ours, theirs in zip(seconds["ours"], seconds["torch"], strict=True)
        ]
        speeds = [f"{tokens / statistics.median(seconds[name]):,.0f}" for name in SYSTEMS]
        rows.append([shape, *speeds, f"{statistics.median(ratios):.2f}x"])
    print_table(["texts x length", "ours, tok/s", "torch, tok/s", "ours over torch"], rows)


if __name__ == "__main__":
    app.run(main)
