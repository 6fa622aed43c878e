"""Draw the lengths of a corpus and its buckets (Vaswani et al. 2017, section 5.1)."""

import numpy as np

from keras_transformer.visualization.length_counts import LengthCounts
from keras_transformer.visualization.theme import SMALL, Theme, new_figure, shades


def draw(counts: LengthCounts, theme: Theme):
    """How often each length is, where the buckets end, and how much of each is padding."""
    figure = new_figure(13.5, 4.2)
    often, where, much = figure.subplots(1, 3)
    _lengths(often, counts, theme)
    _edges(figure, where, counts, theme)
    _padding(much, counts, theme)
    for axes in (often, where, much):
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    return figure


def _lengths(axes, counts, theme):
    longest = counts.lengths.max()
    for side, name in enumerate(("source", "target")):
        pairs = np.bincount(counts.lengths[:, side], minlength=longest + 1)
        mean = counts.lengths[:, side].mean()
        label = f"{name}, mean {mean:.1f}"
        style = ("-", "--")[side]
        axes.step(np.arange(longest + 1), pairs, where="mid", color=theme.series[side])
        axes.lines[-1].set(label=label, linestyle=style)
    axes.set(title=f"{len(counts.lengths):,} pairs", xlabel="pieces", ylabel="sentences")
    axes.set_xlim(0, longest + 1)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(_with_commas)
    axes.legend()


def _edges(figure, axes, counts, theme):
    from matplotlib.colors import LogNorm

    edges = np.arange(counts.lengths.max() + 2) - 0.5
    grid, _, _ = np.histogram2d(*counts.lengths.T, bins=(edges, edges))
    grid = np.ma.masked_equal(grid.T, 0)
    image = axes.pcolormesh(
        edges, edges, grid, cmap=_visible(theme), norm=LogNorm(), rasterized=True
    )
    figure.colorbar(image, ax=axes, label="pairs", format=_with_commas)
    across, up = counts.buckets.lengths.T
    axes.plot(across, up, "s", color=theme.series[1], markersize=4, markerfacecolor="none")
    axes.set(
        title=f"{len(across)} shapes (squares: longest pair of each)",
        xlabel="pieces of the source",
        ylabel="pieces of the target",
    )


def _visible(theme):
    """The colours of `shades` without those that are nearly the paper's."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(shades(theme)(np.linspace(0.25, 1, 256)))


def _with_commas(value, _):
    return f"{value:,.0f}"


def _padding(axes, counts, theme):
    order = np.argsort(counts.positions)[::-1]
    places = np.arange(len(order))
    padding = (counts.positions - counts.tokens)[order]
    axes.bar(places, counts.tokens[order], color=theme.series[0], label="tokens")
    axes.bar(places, padding, bottom=counts.tokens[order], color=theme.series[1], label="padding")
    names = [f"{source} × {target}" for source, target in counts.buckets.lengths[order]]
    axes.set_xticks(places, names, rotation=90, fontsize=SMALL - (1 if len(names) < 30 else 2))
    axes.set(
        title=f"positions of each shape, {counts.buckets.padding:.1%} padding",
        xlabel="source × target, pieces",
        ylabel="positions in an epoch",
    )
    axes.yaxis.set_major_formatter(_with_commas)
    axes.legend()
