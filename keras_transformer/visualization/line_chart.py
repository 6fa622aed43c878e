"""Draw series of numbers as lines, in one panel or in several beside each other."""

import dataclasses
from collections.abc import Mapping, Sequence

from keras_transformer.visualization.theme import Theme, looks, new_figure

# Of series without lines: a disc, a diamond, a square, a triangle.
MARKS = ("o", "D", "s", "^")


@dataclasses.dataclass(frozen=True)
class Panel:
    """Series with common axes.

    Attributes:
        title: what the numbers are.
        across: the name of the horizontal axis.
        series: {name: (x, y)}; a name has the same colour in all panels.
        logarithmic: axes with a logarithmic scale: "", "y" or "xy". One across has a tick at each x
            of the first series.
        names: what stands at 0, 1, 2 and so on across, in place of numbers. There is nothing
            between them, so that each number is a mark of its own and no line joins them.
    """

    title: str
    across: str
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    logarithmic: str = ""
    names: Sequence[str] = ()


def draw(panels: Sequence[Panel], theme: Theme):
    """Panels side by side, and one legend below them.

    Raises:
        ValueError: if there are more names than colours and styles.
    """
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    look = looks(theme, len(names))
    longest = max(map(len, names))
    columns = max(1, min(len(names), int(4.6 * len(panels) * 72 / (5.5 * (longest + 6)))))
    lines = -(-len(names) // columns)
    figure = new_figure(max(4.6 * len(panels), 6.4), 3.4 + 0.2 * lines)
    handles = {}
    # Where lines lie on each other, the earlier one shows as an edge of the later one.
    widths = [2.6 - 1.2 * place / max(len(names) - 1, 1) for place in range(len(names))]
    for panel, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        for name, (x, y) in panel.series.items():
            place = names.index(name)
            colour, style = look[place]
            how = {"color": colour, "linestyle": style, "marker": "o" if len(x) == 1 else None}
            if panel.names:
                how |= {"linestyle": "none", "marker": MARKS[place % len(MARKS)]}
            [handles[name]] = axes.plot(x, y, **how, linewidth=widths[place])
        axes.set(title=panel.title, xlabel=panel.across)
        axes.grid(linewidth=0.6)
        axes.set_axisbelow(True)
        if "y" in panel.logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(_of_narrow_range())
        if "x" in panel.logarithmic:
            axes.set_xscale("log")
            axes.set_xticks(next(iter(panel.series.values()))[0])
            axes.xaxis.minorticks_off()
        elif not panel.names:
            axes.set_xlim(left=0)
            axes.xaxis.set_major_locator(_few())
        axes.xaxis.set_major_formatter(_with_commas())
        if panel.names:
            axes.set_xticks(range(len(panel.names)), panel.names, rotation=90)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    ordered = [handles[name] for name in names]
    figure.legend(ordered, names, loc="outside lower center", ncols=columns)
    return figure


def _with_commas():
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda value, _: f"{value:,.0f}")


def _of_narrow_range():
    from matplotlib.ticker import LogFormatter

    class Plain(LogFormatter):
        """It labels ticks between powers of ten where there are few powers; "0.6", not "6e-01"."""

        def __call__(self, x, pos=None):
            return f"{x:g}" if super().__call__(x, pos) else ""

    return Plain()


def _few():
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(5, integer=True)
