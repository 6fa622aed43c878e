"""Line charts, in one panel or several side by side: learning rates (Vaswani et al. 2017, section
5.3), and what runs measured after each epoch.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from keras_transformer.visualization.theme import Theme, looks, new_figure
from pipelines.options import Options, option

# Marks of series without lines: disc, diamond, square, triangle.
MARKS = ("o", "D", "s", "^")
OF_LEARNING_RATES = {"picture": ("learning_rate",)}
# Points of a learning rate's curve.
POINTS = 150
# Keys of a line of the history -> titles of panels.
MEASURES = {
    "loss": "training loss, nats a label",
    "val_cross_entropy": "validation cross-entropy, nats a label",
    "val_bleu": "validation BLEU",
    "val_f1": "validation F1",
    "val_accuracy": "validation accuracy",
}


@dataclasses.dataclass(frozen=True)
class Panel:
    """Series with common axes.

    Attributes:
        title: what the numbers are.
        across: the name of the horizontal axis.
        series: {name: (x, y)}; a name has the same colour in all panels.
        logarithmic: axes with a logarithmic scale: "", "y" or "xy". The horizontal one has a tick
            at each x of the first series.
        names: labels of x = 0, 1, 2... in place of numbers. Nothing is between them, so points are
            marks without a line.
    """

    title: str
    across: str
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    logarithmic: str = ""
    names: Sequence[str] = ()


class LearningRates(Options):
    """The curves of --schedules."""

    schedules: tuple[str, ...] = option(
        ("base.flags",),
        "Learning rates to draw, joined by commas: each a flag file, flags such as "
        "--warmup_steps=8000, or a file followed by flags.",
        at_least=1,
        only=OF_LEARNING_RATES,
    )
    steps: int | None = option(
        None,
        "Last step of the learning rates. Default: ten times the longest warm-up.",
        at_least=2,
        only=OF_LEARNING_RATES,
    )

    def measure(self, recipes: Mapping[str, Mapping[str, Any]]):
        return functools.partial(draw, [learning_rates(recipes, self.steps)])


class Curves(Options):
    """Loss and BLEU, F1 or accuracy of several runs."""

    def measure(self, model: str, search: Mapping):
        paths = model.split(",")
        names = names_of(paths)
        histories = [read_history(path) for path in paths]
        return functools.partial(draw, panels(dict(zip(names, histories, strict=True))))


def learning_rates(recipes: Mapping[str, Mapping[str, Any]], steps: int | None = None) -> Panel:
    """Compute each recipe's learning rate over the steps of training."""
    from keras import ops

    from keras_transformer.training.optimizer import schedule

    steps = steps or 10 * max(recipe["warmup_steps"] for recipe in recipes.values())
    peaks = {recipe["warmup_steps"] for recipe in recipes.values()}
    # Curves have a corner where the warm-up ends, so that step is always a point.
    regular = {int(step) for step in np.linspace(1, steps, POINTS)}
    at = sorted(regular | {peak for peak in peaks if peak <= steps})
    series = {}
    for name, recipe in recipes.items():
        rate = schedule(**recipe)
        # Keras counts steps from 0.
        series[name] = (at, [float(ops.convert_to_numpy(rate(step - 1))) for step in at])
    return Panel("learning rate", "step", series)


def read_history(path: str) -> list[dict]:
    """Read what a run measured, a dictionary for each epoch; skip a line still being written."""
    from keras_transformer.training.validation import read_results
    from keras_transformer.visualization.model_reading import run_of

    folder = run_of(path, "curves")
    folder.read_description()
    if not folder.history.exists():
        raise FileNotFoundError(
            f"{path} has no {folder.history.name} yet: it is written at the end of an epoch. "
            "Train on."
        )
    results = read_results(folder.history)
    if not results:
        raise ValueError(
            f"{folder.history} must hold a line of JSON for each epoch. Received: none that can be "
            "read. Leave this run out, or train on."
        )
    return results


def names_of(paths: Sequence[str]) -> list[str]:
    """Return the names of folders if these differ, else the whole paths."""
    names = [pathlib.Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def panels(histories: Mapping[str, Sequence[Mapping]]) -> list[Panel]:
    """Make a panel of each measure, with a series for each run that has it."""
    all_panels = []
    for key, title in MEASURES.items():
        series = {}
        for name, history in histories.items():
            epochs = _whole_epochs(history)
            points = [(line["step"], line[key]) for line in epochs if key in line]
            if points and not (key == "val_accuracy" and {"val_bleu", "val_f1"} & {*epochs[0]}):
                series[name] = tuple(zip(*points, strict=True))
        if series:
            all_panels.append(Panel(title, "step", series))
    if not all_panels:
        raise ValueError(
            f"the histories of {', '.join(histories)} hold none of {', '.join(MEASURES)}. Name "
            "runs that have trained for an epoch."
        )
    return all_panels


def _whole_epochs(history):
    """Drop an epoch that a limit ended early: its loss is a mean over few steps."""
    steps = [line["step"] for line in history]
    counts = [after - before for before, after in zip([0, *steps], steps, strict=False)]
    return [line for line, count in zip(history, counts, strict=True) if count * 10 > max(counts)]


def draw(panels: Sequence[Panel], theme: Theme):
    """Draw panels side by side, with one legend below them."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    look = looks(theme, len(names))
    longest = max(map(len, names))
    columns = max(1, min(len(names), int(4.6 * len(panels) * 72 / (5.5 * (longest + 6)))))
    lines = -(-len(names) // columns)
    figure = new_figure(max(4.6 * len(panels), 6.4), 3.4 + 0.2 * lines)
    handles = {}
    # Later lines are thinner, so that an equal earlier one stays visible behind them.
    widths = [2.6 - 1.2 * place / max(len(names) - 1, 1) for place in range(len(names))]
    for panel, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        for name, (x, y) in panel.series.items():
            place = names.index(name)
            colour, style = look[place]
            line = {"color": colour, "linestyle": style, "marker": "o" if len(x) == 1 else None}
            if panel.names:
                line |= {"linestyle": "none", "marker": MARKS[place % len(MARKS)]}
            [handles[name]] = axes.plot(x, y, **line, linewidth=widths[place])
        _draw_axes(axes, panel)
    ordered = [handles[name] for name in names]
    figure.legend(ordered, names, loc="outside lower center", ncols=columns)
    return figure


def _draw_axes(axes, panel):
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set(title=panel.title, xlabel=panel.across)
    axes.grid(linewidth=0.6)
    axes.set_axisbelow(True)
    if "y" in panel.logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(of_narrow_range())
    if "x" in panel.logarithmic:
        axes.set_xscale("log")
        axes.set_xticks(next(iter(panel.series.values()))[0])
        axes.xaxis.minorticks_off()
    elif not panel.names:
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    if panel.names:
        axes.set_xticks(range(len(panel.names)), panel.names, rotation=90)
    axes.spines[["top", "right"]].set_visible(False)


def of_narrow_range():
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        """Labels minor ticks if the axis has few powers of ten, as "0.6", not "6e-01"."""

        def __call__(self, x, pos=None):
            return f"{x:g}" if super().__call__(x, pos) else ""

    return Plain()
