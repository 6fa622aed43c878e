"""Table 3 (Vaswani et al. 2017, section 6.2), quoted, and its rows at a small scale."""

import collections
from collections.abc import Mapping
from typing import NamedTuple

from keras_transformer.flagfiles import expand_flagfiles
from keras_transformer.models import Hyperparameters


class Row(NamedTuple):
    """What the paper prints.

    Attributes:
        perplexity: a word piece, of newstest2013.
        bleu: of newstest2013.
        millions: of parameters; None where the paper leaves them out.
    """

    perplexity: float
    bleu: float
    millions: int | None = None


PAPER = {
    "table3/base": Row(4.92, 25.8, 65),
    "table3/a_1_head": Row(5.29, 24.9),
    "table3/a_4_heads": Row(5.00, 25.5),
    "table3/a_16_heads": Row(4.91, 25.8),
    "table3/a_32_heads": Row(5.01, 25.4),
    "table3/b_d_k_16": Row(5.16, 25.1, 58),
    "table3/b_d_k_32": Row(5.01, 25.4, 60),
    "table3/c_2_layers": Row(6.11, 23.7, 36),
    "table3/c_4_layers": Row(5.19, 25.3, 50),
    "table3/c_8_layers": Row(4.88, 25.5, 80),
    "table3/c_d_model_256": Row(5.75, 24.5, 28),
    "table3/c_d_model_1024": Row(4.66, 26.0, 168),
    "table3/c_d_ff_1024": Row(5.12, 25.4, 53),
    "table3/c_d_ff_4096": Row(4.75, 26.2, 90),
    "table3/d_dropout_0": Row(5.77, 24.6),
    "table3/d_dropout_0.2": Row(4.95, 25.5),
    "table3/d_label_smoothing_0": Row(4.67, 25.3),
    "table3/d_label_smoothing_0.2": Row(5.47, 25.7),
    "table3/e_learned_positions": Row(4.92, 25.7),
    "big": Row(4.33, 26.4, 213),
}
BASE = "table3/base"
# Section 5.1: "about 37000 tokens".
VOCABULARY = 37_000
# With so many, all rows but big differ from base as the paper's do, within a million.
FITTING_VOCABULARY = 41_000
# What a row is divided by at the small scale. Heads stay as many, so that a head of base has
# d_k = 16, and the rows' ratios to base are the paper's.
SMALLER = {"num_layers": 2, "d_model": 4, "d_ff": 4, "d_k": 4, "d_v": 4}
# What scores must have in common to be set beside each other.
SAME = ("steps", "batch_tokens", "text", "arithmetic")
VARIES = (*SMALLER, "num_heads", "dropout", "label_smoothing", "positions")


def model_flags(row: str) -> dict[str, str]:
    """The values in a row's flag file that describe its model, as strings."""
    arguments = expand_flagfiles([f"--flagfile={row}.flags"])
    values = dict(argument.removeprefix("--").split("=", 1) for argument in arguments)
    return {name: values[name] for name in VARIES if name in values}


def _typed(name, text):
    if name == "positions":
        return text
    return float(text) if name in ("dropout", "label_smoothing") else int(text)


def hyperparameters(row: str) -> Hyperparameters:
    """The hyperparameters of a row in the paper."""
    return Hyperparameters(
        VOCABULARY, **{name: _typed(name, text) for name, text in model_flags(row).items()}
    )


def more_than_base(row: str, counts: Mapping[str, float], pieces: int) -> float:
    """What a row has more than base, in millions of parameters.

    Args:
        row: a flag file.
        counts: millions of parameters with `VOCABULARY` pieces, by flag file; base's among them.
        pieces: for which it is asked; each is a row of d_model in the one table of embeddings.
    """
    wider = hyperparameters(row).d_model - hyperparameters(BASE).d_model
    return counts[row] - counts[BASE] + (pieces - VOCABULARY) * wider / 1e6


def small_scale(row: str) -> dict[str, str]:
    """Values for a row at the small scale, by flag."""
    values = model_flags(row)
    smaller = {
        name: str(int(values[name]) // factor) for name, factor in SMALLER.items() if name in values
    }
    return {**values, **smaller}


def comparable(
    runs: Mapping[str, Mapping[str, float]],
) -> tuple[dict[str, list[Mapping[str, float]]], list[str]]:
    """The scores of table 3 that may be set beside each other: of the same updates, tokens, text
    and arithmetic as most of them.

    Args:
        runs: scores by the run's name, "<row>-<seed>", as `--kept` of
            `benchmarks.paper.small_runs` writes them.

    Returns:
        Scores of each row that has some, by flag file in the paper's order, and the names of the
        runs that are left out.
    """
    rows = {row.removeprefix("table3/"): row for row in PAPER}
    settings = {
        run: tuple(scores.get(name) for name in SAME)
        for run, scores in runs.items()
        if _row_of(run) in rows
    }
    common = collections.Counter(settings.values()).most_common(1)
    compared = [run for run in settings if settings[run] == common[0][0]]
    scores_of_rows = {
        row: [runs[run] for run in compared if _row_of(run) == name] for name, row in rows.items()
    }
    left_out = [run for run in runs if run not in compared]
    return {row: scores for row, scores in scores_of_rows.items() if scores}, left_out


def _row_of(run):
    """Its name without the seed."""
    return run.rpartition("-")[0]
