"""The tables of `benchmarks.train_speed`: what was reached, the goals, the parts of a step."""

import statistics

import numpy as np

from benchmarks.turns import Trainer

# (of, over, least ratio) by size: what this project promises.
GOALS = {
    "small": [("fit_float32", "torch_float32", 1.3), ("fit_bfloat16", "torch_bfloat16", 1.3)],
    "base": [("fit_float32", "torch_float32", 1.3), ("fit_bfloat16", "torch_bfloat16", 1.1)],
}
GOALS_OF_ALL = [
    ("fit_float32", "opennmt_float32", 1.0),
    ("fit_float32", "bare_float32", 0.95),
    ("fit_bfloat16", "bare_bfloat16", 0.95),
]
PEAK_GOALS = {"base": {"fit_float32": 0.70, "fit_bfloat16": 0.65}}


def rows(size, chosen):
    """What each system reached, and the limit of the machine, a row each."""
    for precision in ("float32", "bfloat16"):
        peaks = size.answered("peak", precision)
        ceiling = statistics.median(peaks) / (size.useful.sum() / size.tokens.sum())
        spread = f"{peaks.min() / 1e9:.0f}-{peaks.max() / 1e9:.0f} GFLOP/s"
        yield [
            size.name,
            f"limit: matrix product {precision}",
            f"{ceiling:.0f}",
            spread,
            "",
            "",
            "",
            "",
        ]
    for name in chosen:
        if name in size.unavailable:
            yield [size.name, name, f"not run: {size.unavailable[name]}", "", "", "", "", ""]
            continue
        speeds = size.speeds(name)
        cores = size.answered(name, "core_seconds") / size.answered(name, "seconds")
        ratio = size.ratio(name, "torch_float32")
        yield [
            size.name,
            name,
            f"{statistics.median(speeds):.0f}",
            f"{speeds.min():.0f}-{speeds.max():.0f}",
            f"{statistics.median(cores):.2f}",
            f"{ratio:.2f}" if ratio else "",
            f"{size.share_of_peak(name, size.useful):.0%}",
            f"{size.share_of_peak(name, size.padded):.0%}",
        ]


def goals(size):
    """The goals of this size, and what was measured, a row each."""
    for of, over, least in [*GOALS.get(size.name, []), *GOALS_OF_ALL]:
        ratio = size.ratio(of, over)
        verdict = "not measured" if ratio is None else "met" if ratio >= least else "missed"
        yield [
            size.name,
            f"{of} / {over}",
            f"{ratio:.2f}" if ratio else "",
            f"{least:.2f}",
            verdict,
        ]
    for name, least in PEAK_GOALS.get(size.name, {}).items():
        if name in size.answers and name not in size.unavailable:
            share = size.share_of_peak(name, size.useful)
            yield [
                size.name,
                f"{name}: share of its peak",
                f"{share:.2f}",
                f"{least:.2f}",
                "met" if share >= least else "missed",
            ]


def pieces(size):
    """The parts of a step, on the batch of median size."""
    typical = int(
        np.argsort([source.size + target.size for source, target in size.batches])[
            len(size.batches) // 2
        ]
    )
    trainer = Trainer(
        "benchmarks.trainers.pieces",
        {**size.task, "batch": typical},
        size.folder / "pieces.log",
    )
    try:
        answer = trainer.train(1)
    finally:
        trainer.close()
    if "unavailable" in answer:
        return [[answer["unavailable"], "", "", "", ""]]
    for parts in answer.values():
        whole = parts.pop("whole step")
        parts["sum of the pieces"] = sum(
            value for name, value in parts.items() if name != "accuracy"
        )
        parts["whole bare step"] = whole
    names = list(answer["bfloat16"])
    cells = {
        name: [answer[precision].get(name) for precision in ("float32", "bfloat16")]
        for name in names
    }
    totals = cells["whole bare step"]
    source, target = size.batches[typical]
    print(
        f"\n{size.name}, a batch of {source.shape} and {target.shape} positions, each piece "
        "compiled alone, forward and backward:"
    )
    return [
        [name, *_piece(values[0], totals[0]), *_piece(values[1], totals[1])]
        for name, values in cells.items()
    ]


def _piece(seconds, whole):
    return ("", "") if seconds is None else (f"{seconds * 1e3:.0f}", f"{seconds / whole:.0%}")
