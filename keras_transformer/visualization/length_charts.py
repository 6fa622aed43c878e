"""Sentence lengths of a corpus, buckets, and padding (Vaswani et al. 2017, section 5.1)."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_transformer.visualization.charts import of_narrow_range
from keras_transformer.visualization.theme import SMALL, Theme, new_figure, shades
from pipelines.options import Options


class Lengths(Options):
    """Sentence lengths of the run's corpus, and its buckets."""

    def measure(self, model: str, search: Mapping):
        from keras_transformer.inference.held_out_text import corpus_of
        from keras_transformer.visualization.model_reading import run_of_pairs
        from pipelines import vocabularies
        from pipelines.batches import bucketing, texts
        from pipelines.corpora.protected_text import protect
        from pipelines.vocabularies.protected_spans import ProtectedSpans

        folder = run_of_pairs(model, "lengths")
        description = folder.read_description()
        corpus = corpus_of(description, model, "a run that was trained here")
        training = description["training"]
        if corpus.weights is not None:
            print("Each pair is counted once: the weights of the mixture are left out.")
        protected = ProtectedSpans.in_description(description)
        train = protect(corpus, protected, strict=False).train if protected else corpus.train
        vocabulary = vocabularies.load(folder.path)
        pairs = texts.tokenize_pairs(train, vocabulary, training["max_length"])
        is_static = description.get("asked", {}).get("static_shapes")
        share = bucketing.MOST_PADDING_STATIC if is_static else bucketing.MOST_PADDING
        counts = count(pairs.examples().lengths, training["batch_tokens"], share)
        return functools.partial(draw, counts)


@dataclasses.dataclass(frozen=True)
class LengthCounts:
    """Lengths of source and target in pieces, EOS included, integers (pairs, 2); their `Buckets`;
    and each bucket's tokens of both sides, without and with padding, integers (buckets,).
    """

    lengths: np.ndarray
    buckets: Any
    tokens: np.ndarray
    positions: np.ndarray


def count(lengths, batch_tokens: int, *most_padding: float) -> LengthCounts:
    """Count lengths (pairs, 2) by bucket; the other arguments are those of `bucketing.bucket`."""
    from pipelines.batches.bucketing import bucket

    lengths = np.asarray(lengths)
    buckets = bucket(lengths, batch_tokens, *most_padding)
    pairs = np.bincount(buckets.bucket_of)
    tokens = np.bincount(buckets.bucket_of, lengths.sum(axis=1)).astype(np.int64)
    return LengthCounts(lengths, buckets, tokens, pairs * buckets.lengths.sum(axis=1))


def draw(counts: LengthCounts, theme: Theme):
    """Draw how often each length occurs, where the buckets end, and how much padding each has."""
    figure = new_figure(13.5, 4.2)
    lengths, shapes, padding = figure.subplots(1, 3)
    _draw_lengths(lengths, counts, theme)
    _draw_shapes(figure, shapes, counts, theme)
    _draw_padding(padding, counts, theme)
    for axes in (lengths, shapes, padding):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_lengths(axes, counts, theme):
    longest = counts.lengths.max()
    for side, name in enumerate(("source", "target")):
        pairs = np.bincount(counts.lengths[:, side], minlength=longest + 1)
        mean = counts.lengths[:, side].mean()
        axes.step(np.arange(longest + 1), pairs, where="mid", color=theme.series[side])
        axes.lines[-1].set(label=f"{name}, mean {mean:.1f}", linestyle=("-", "--")[side])
    axes.set(title=f"{len(counts.lengths):,} pairs", xlabel="pieces", ylabel="sentences")
    axes.set_xlim(0, longest + 1)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend()


def _draw_shapes(figure, axes, counts, theme):
    from matplotlib.colors import ListedColormap, LogNorm

    edges = np.arange(counts.lengths.max() + 2) - 0.5
    grid, _, _ = np.histogram2d(*counts.lengths.T, bins=(edges, edges))
    grid = np.ma.masked_equal(grid.T, 0)
    # Leave out the shades closest to the background.
    visible = ListedColormap(shades(theme)(np.linspace(0.25, 1, 256)))
    image = axes.pcolormesh(edges, edges, grid, cmap=visible, norm=LogNorm(), rasterized=True)
    bar = figure.colorbar(image, ax=axes, label="pairs", format="{x:,.0f}").ax
    bar.yaxis.set_minor_formatter(of_narrow_range())
    across, up = counts.buckets.lengths.T
    axes.plot(across, up, "s", color=theme.series[1], markersize=4, markerfacecolor="none")
    axes.set(
        title=f"{len(across)} shapes (squares: longest pair of each)",
        xlabel="pieces of the source",
        ylabel="pieces of the target",
    )


def _draw_padding(axes, counts, theme):
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
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend()
