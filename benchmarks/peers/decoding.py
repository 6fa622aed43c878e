"""Decoding beside the peers': `python -m benchmarks.peers.decoding --model=runs/NAME
--lines=test.en`.

With random weights every translation must get the same number of tokens:
`--size=base --data_dir=multi30k --forced_lengths=25,50,100,200`.

The systems translate the lines in turns, each in a process of its own. All have the same weights,
but for OpenNMT-tf, whose weights are random. The table shows target tokens a second, EOS included,
as medians of the rounds. At a forced length our translations end with EOS where the others have one
more word, so lines cannot be compared with theirs. `--one_at_a_time` translates line by line, and
adds how long one waits for a line.

The systems named student_ have the weights of another run, `--student=RUN`. Compare lines a second
of theirs, since its vocabulary may be another.
"""

import pathlib
import statistics
import tempfile

import numpy as np
from absl import app, flags

from benchmarks.peers import systems as of_systems
from benchmarks.peers.systems import ONE_AT_A_TIME, SYSTEMS, Systems
from benchmarks.peers.turns import take_turns
from benchmarks.tables import print_table

# `--help` shows those of the model and its lines too.
flags.adopt_module_key_flags(of_systems)
BEAM_SIZES = flags.DEFINE_list("beam_sizes", ["4", "1"], "Hypotheses; 1 is greedy search.")
FORCED_LENGTHS = flags.DEFINE_list(
    "forced_lengths",
    ["0"],
    "Tokens of every translation, which is also the number of decoding steps; 0: free.",
)
CHOSEN = flags.DEFINE_list(
    "systems", list(SYSTEMS), "The systems to measure; ratios are to the first."
)
flags.register_validator(
    CHOSEN, lambda names: set(names) <= SYSTEMS.keys(), f"Choose from {', '.join(SYSTEMS)}."
)
ROUNDS = flags.DEFINE_integer("rounds", 3, "Rounds that count; one more warms up.", lower_bound=1)


def measure(beam_size, forced_length, systems):
    """Yield a row of the table for each system."""
    starters = {name: systems.starter(name, beam_size, forced_length) for name in CHOSEN.value}
    answers, unavailable = take_turns(starters, ROUNDS.value)
    speeds = {
        name: np.array([systems.tokens(answer) / answer["seconds"] for answer in rounds])
        for name, rounds in answers.items()
    }
    reference = CHOSEN.value[0]
    for name in CHOSEN.value:
        beginning = [beam_size, forced_length or "free", name]
        if name in unavailable:
            yield [*beginning, f"not run: {unavailable[name]}"] + [""] * (len(COLUMNS) - 4)
            continue
        rounds = answers[name]
        ratio = same = ""
        if reference in answers:
            ratio = f"{statistics.median(speeds[name] / speeds[reference]):.2f}"
            if not forced_length:
                lines = (rounds[0]["translations"], answers[reference][0]["translations"])
                same = f"{sum(map(str.__eq__, *lines))} of {len(lines[0])}"
        cores = statistics.median(answer["core_seconds"] / answer["seconds"] for answer in rounds)
        waits = np.concatenate([answer["latencies"] for answer in rounds]) * 1e3
        yield [
            *beginning,
            f"{statistics.median(len(systems.lines) / answer['seconds'] for answer in rounds):.1f}",
            f"{statistics.median(speeds[name]):.0f}",
            f"{speeds[name].min():.0f}-{speeds[name].max():.0f}",
            *(ratio, f"{cores:.2f}", same),
            *(f"{rounds[0][key]:.2f}" for key in ("started", "loaded", "first")),
            f"{rounds[0]['memory']:.0f}",
            *(
                (f"{wait:.1f}" for wait in np.percentile(waits, [50, 99]))
                if ONE_AT_A_TIME.value
                else ("", "")
            ),
        ]


COLUMNS = (
    *("beam", "length", "system", "lines/s", "tokens/s", "rounds", "x the first", "cores busy"),
    *("lines as the first", "process to first translation, s", "of it loading", "translating"),
    "MB then",
    *("p50 ms", "p99 ms"),
)


def main(_):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        systems = Systems(pathlib.Path(folder))
        for beam_size in map(int, BEAM_SIZES.value):
            for length in map(int, FORCED_LENGTHS.value):
                rows += measure(beam_size, length or None, systems)
    print_table(COLUMNS, rows)


if __name__ == "__main__":
    app.run(main)
