"""Measure how the time of a decoding step grows with the length of the translation:
`python -m benchmarks.decode_length --size=base --data_dir=multi30k --plot=length.png`.

Every translation has a forced length, and the systems take turns. A step decodes the next token for
all hypotheses of a batch of sentences. The results are medians of the rounds. A system that decodes
several batches at once (`*_spread`) is left out: its time is no step's. The plot needs matplotlib:
the extra `plots`.
"""

import math
import pathlib
import statistics
import tempfile

from absl import app, flags

from benchmarks.decoding import SYSTEMS, Systems
from benchmarks.tables import print_table

ONE_BATCH = [name for name, (_, options) in SYSTEMS.items() if not options["spread"]]
LENGTHS = flags.DEFINE_list("lengths", ["25", "50", "100", "200"], "Forced lengths, in tokens.")
BEAM_SIZE = flags.DEFINE_integer("beam_size", 4, "Hypotheses; 1 is greedy search.", lower_bound=1)
BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Sentences decoded at once.", lower_bound=1)
CHOSEN = flags.DEFINE_list(
    "systems",
    ["ctranslate2_float32", "saved_model_float32"],
    f"Systems to measure, of: {', '.join(ONE_BATCH)}.",
)
flags.register_validator(
    "systems",
    lambda names: set(names) <= set(ONE_BATCH),
    "must be systems that decode one batch at a time: a step of several at once has no time.",
)
ROUNDS = flags.DEFINE_integer("rounds", 3, "Rounds that count; one more warms up.", lower_bound=1)
PLOT = flags.DEFINE_string("plot", None, "File of the plot, such as length.png or length.svg.")


def measure(systems):
    """Measure the seconds to translate all lines, by system and then by length. A system that
    cannot run is reported and left out.
    """
    seconds = {name: {} for name in CHOSEN.value}
    for length in map(int, LENGTHS.value):
        decoding = {
            "beam_size": BEAM_SIZE.value,
            "batch_size": BATCH_SIZE.value,
            "forced_length": length,
        }
        answers, unavailable = systems.take_turns(CHOSEN.value, ROUNDS.value, **decoding)
        for name, reason in unavailable.items():
            print(f"{name}, {length} tokens: not run: {reason}", flush=True)
        for name, given in answers.items():
            seconds[name][length] = statistics.median(answer["seconds"] for answer in given)
        print(f"{length} tokens done", flush=True)
    return seconds


def draw(steps, sentences, path):
    """Draw the milliseconds of a step over the length, one curve for each system.

    Args:
        steps: milliseconds, by system and then by length.
        sentences: how many are decoded at once.
        path: file of the picture.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for name, by_length in steps.items():
        axes.plot(by_length.keys(), by_length.values(), marker="o", label=name)
    axes.set(
        xlabel="tokens of a translation",
        ylabel=f"ms a step, {sentences} sentences, beam {BEAM_SIZE.value}",
        xlim=0,
        ylim=0,
    )
    axes.legend()
    figure.savefig(path, dpi=150)


def main(_):
    with tempfile.TemporaryDirectory() as folder:
        systems = Systems(pathlib.Path(folder))
        seconds = measure(systems)
    sentences = len(systems.lines)
    batches = math.ceil(sentences / BATCH_SIZE.value)
    steps = {
        name: {length: value / (batches * length) * 1e3 for length, value in given.items()}
        for name, given in seconds.items()
    }
    rows = [
        [
            str(length),
            name,
            f"{steps[name][length]:.1f}",
            f"{seconds[name][length] / (sentences * length) * 1e6:.0f}",
        ]
        for length in map(int, LENGTHS.value)
        for name in CHOSEN.value
        if length in steps[name]
    ]
    print_table(["tokens", "system", "ms a step", "us a target token"], rows)
    if PLOT.value:
        draw(steps, min(sentences, BATCH_SIZE.value), PLOT.value)


if __name__ == "__main__":
    app.run(main)
