"""Compare our decoding speed with that of other engines:
`python -m benchmarks.decode_speed --model=runs/NAME --lines=test.en`.

With random weights every translation must get the same number of tokens:
`--size=base --data_dir=multi30k --forced_length=30`.

The systems translate the lines in turns (A B C A B C ...), each in a process of its own. All have
the same weights, but for OpenNMT-tf, whose weights are random. The table shows target tokens a
second, EOS included, as medians of the rounds. At a forced length our translations end with EOS
where the others have one more word, so lines cannot be compared with theirs.
"""

import pathlib
import statistics
import tempfile

from absl import app, flags

from benchmarks.decoding import OPENNMT, OURS, SYSTEMS, Systems
from benchmarks.tables import print_table

BEAM_SIZES = flags.DEFINE_list("beam_sizes", ["4", "1"], "Hypotheses; 1 is greedy search.")
BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Sentences decoded at once.")
FORCED_LENGTH = flags.DEFINE_integer(
    "forced_length",
    None,
    "Tokens of every translation, which is also the number of decoding steps. Default: free.",
    lower_bound=2,
)
CHOSEN = flags.DEFINE_list(
    "systems", list(SYSTEMS), "The systems to measure; ratios are to the first."
)
ROUNDS = flags.DEFINE_integer("rounds", 3, "Rounds that count; one more warms up.", lower_bound=1)


def comparable(name, reference):
    """Say whether two systems should give the same lines."""
    modules = {SYSTEMS[name][0], SYSTEMS[reference][0]}
    return OPENNMT not in modules and (
        len(modules) == 1 or not FORCED_LENGTH.value or OURS not in modules
    )


def cores_busy(answers):
    """Median number of cores that a system kept busy."""
    return statistics.median(answer["core_seconds"] / answer["seconds"] for answer in answers)


def measure(beam_size, systems):
    """Yield the table's rows for one beam size."""
    decoding = {
        "beam_size": beam_size,
        "batch_size": BATCH_SIZE.value,
        "forced_length": FORCED_LENGTH.value,
    }
    answers, unavailable = systems.take_turns(CHOSEN.value, ROUNDS.value, **decoding)
    speeds = {
        name: [systems.tokens(answer) / answer["seconds"] for answer in given]
        for name, given in answers.items()
    }
    reference = CHOSEN.value[0]
    for name in CHOSEN.value:
        if name in unavailable:
            yield [str(beam_size), name, f"not run: {unavailable[name]}", "", "", "", "", ""]
            continue
        given = answers[name]
        ratio = ""
        same = ""
        if reference in answers:
            ratio = (
                f"{statistics.median(map(float.__truediv__, speeds[name], speeds[reference])):.2f}"
            )
            if comparable(name, reference):
                expected = answers[reference][0]["translations"]
                same = (
                    f"{sum(map(str.__eq__, given[0]['translations'], expected))} of {len(expected)}"
                )
        yield [
            str(beam_size),
            name,
            f"{statistics.median(speeds[name]):.0f}",
            f"{min(speeds[name]):.0f}-{max(speeds[name]):.0f}",
            ratio,
            f"{cores_busy(given):.2f}",
            same,
            f"{given[0]['loaded'] + given[0]['first']:.2f} s",
        ]


def main(_):
    with tempfile.TemporaryDirectory() as folder:
        systems = Systems(pathlib.Path(folder))
        rows = [row for beam_size in BEAM_SIZES.value for row in measure(int(beam_size), systems)]
    print_table(
        [
            "beam",
            "system",
            "tokens/s",
            "rounds",
            "x the first",
            "cores busy",
            "lines as the first",
            "load and first line",
        ],
        rows,
    )


if __name__ == "__main__":
    app.run(main)
