"""How long one waits for a translation: `python -m benchmarks.decode_latency --model=runs/NAME
--lines=test.en`.

In each round every system, in turns, starts in a fresh process, loads the model, translates one
line, then line after line, one at a time. Starting, loading and the first translation are medians
of the rounds; the percentiles are those of all lines of all rounds, in milliseconds. A system has
all cores.
"""

import pathlib
import statistics
import tempfile
import time

import numpy as np
from absl import app, flags

from benchmarks.decoding import SYSTEMS, Systems
from benchmarks.tables import print_table

BEAM_SIZE = flags.DEFINE_integer("beam_size", 4, "1: greedy.", lower_bound=1)
FORCED_LENGTH = flags.DEFINE_integer(
    "forced_length", None, "Tokens of every translation.", lower_bound=2
)
CHOSEN = flags.DEFINE_list(
    "systems",
    ["ctranslate2_float32", "saved_model_float32"],
    f"Which take turns, of {', '.join(SYSTEMS)}.",
)
ROUNDS = flags.DEFINE_integer("rounds", 3, "Fresh processes of each system.", lower_bound=1)


def measure(systems):
    """The answers of each fresh process, by system; and why a system did not run, or None."""
    decoding = {
        "beam_size": BEAM_SIZE.value,
        "batch_size": 1,
        "forced_length": FORCED_LENGTH.value,
        "one_at_a_time": True,
    }
    starts = {}
    answers = {}
    unavailable = {}
    for name in CHOSEN.value:
        starts[name], unavailable[name] = systems.prepare(name, **decoding)
    for number in range(ROUNDS.value):
        for name in [name for name in CHOSEN.value if not unavailable[name]]:
            began = time.perf_counter()
            trainer = starts[name]()
            started = time.perf_counter() - began
            answer = (
                {"unavailable": trainer.unavailable} if trainer.unavailable else trainer.train(1)
            )
            trainer.close()
            unavailable[name] = answer.get("unavailable")
            answers.setdefault(name, []).append({**answer, "started": started})
        print(f"round {number + 1} of {ROUNDS.value}", flush=True)
    return answers, unavailable


def main(_):
    with tempfile.TemporaryDirectory() as folder:
        answers, unavailable = measure(Systems(pathlib.Path(folder)))
    rows = []
    for name in CHOSEN.value:
        if unavailable[name]:
            rows.append([name, f"not run: {unavailable[name]}", "", "", "", "", ""])
            continue
        given = answers[name]
        seconds = [
            statistics.median(answer[what] for answer in given)
            for what in ("started", "loaded", "first")
        ]
        latencies = np.concatenate([answer["latencies"] for answer in given]) * 1e3
        milliseconds = [*np.percentile(latencies, [50, 99]), latencies.max()]
        rows.append(
            [
                name,
                *(f"{value:.2f} s" for value in seconds),
                *(f"{value:.1f}" for value in milliseconds),
            ]
        )
    print_table(
        [
            "system",
            "process to first translation",
            "of it loading",
            "of it translating",
            "p50 ms",
            "p99 ms",
            "longest ms",
        ],
        rows,
    )


if __name__ == "__main__":
    app.run(main)
