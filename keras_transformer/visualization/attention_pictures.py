"""What a model attends to while it reads or translates a line (Vaswani et al. 2017, figures 3-5):
maps of all heads, lines between words for the heads of a layer, or a matrix of words.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from keras_transformer.visualization.attended import STACKS, TITLES, Attended
from keras_transformer.visualization.theme import (
    SMALL,
    TEXT,
    Theme,
    ink_on,
    looks,
    new_figure,
    shades,
    shortened,
    width_of,
)
from pipelines.options import Options, option

# Inches: least and greatest side of a map, and the least height of a row that has its word.
SIDES = (1.3, 3.0)
MAP_ROW = 0.115
# Inches: height of a word's row, width between the two columns, width of a head in the legend.
ROW = 0.25
BETWEEN = 3.4
LEGEND = 0.95
# Smaller weights are not drawn as a line, or not written as a number.
LEAST_LINE = 0.04
LEAST_NUMBER = 0.1
# More columns than this are narrower, with steeper words.
FEW = 14
# The pictures that an option is for.
OF_A_LINE = {"picture": ("attention", "head", "alignment", "n_best")}
OF_ATTENTION = {"picture": ("attention", "head", "alignment")}
OF_A_LAYER = {"picture": ("head", "alignment")}
LABEL = "share of its attention that each word of a row gives to a word of a column"


class OfALine(Options):
    """Sentence."""

    line: str | None = option(
        None, "Sentence for attention, head, alignment and n_best.", only=OF_A_LINE
    )

    def required_line(self) -> str:
        """The sentence, which must not be blank."""
        if not (self.line and self.line.strip()):
            raise ValueError(
                "--line must hold the sentence to look at. Received: "
                f'--line={self.line or ""!r}. Try --line="Turn off the lights."'
            )
        return self.line


class Maps(OfALine):
    """Maps of all layers and heads."""

    translation: str | None = option(
        None,
        "Translation of --line to draw the attention of. Default: the model's own translation, "
        "which is printed.",
        only=OF_ATTENTION,
    )
    stack: str | None = option(
        None,
        "Attention to draw: the encoder's or the decoder's self-attention, or cross, the decoder's "
        "attention to the source. Default: cross; of a model with one stack, its self-attention.",
        choices=STACKS,
        only=OF_ATTENTION,
    )
    pieces: bool = option(False, "Draw pieces instead of joining them to words.", only=OF_ATTENTION)

    def measure(self, model: str, search: Mapping):
        return functools.partial(draw_maps, self.attended(model, search))

    def attended(self, model: str, search: Mapping) -> Attended:
        """Run the model on the line. Without a translation, translate by the options `search`."""
        from keras_transformer.inference.translator import Translator
        from keras_transformer.runs.model_path import refuse_graphs
        from keras_transformer.saved_models.signature import as_bytes

        line = self.required_line()
        # Before TensorFlow is imported.
        refuse_graphs(model)
        from keras_transformer.tasks.text_task import attend_of

        if attend := attend_of(model):
            return Attended.of(_of_one_text(attend(text=as_bytes([line]))), self.stack, self.pieces)
        translator = Translator.load(model, **search)
        translation = self.translation
        if translation is None:
            [translation] = translator.translate([line])
            print(translation)
        return Attended.of(translator.attention(line, translation), self.stack, self.pieces)


def _of_one_text(answer):
    """Convert the answer of the signature "attend" for one text to what `Attended.of` takes."""
    from keras_transformer.inference.live import as_pieces

    [pieces] = as_pieces(answer["pieces"])
    [stack] = answer.keys() - {"pieces"}
    return {stack: answer[stack][0], "source_pieces": pieces, "target_pieces": pieces}


class OfALayer(Maps):
    """Layer and heads."""

    layer: int | None = option(
        None,
        "Layer for head and alignment, from 1. Default: the last but one, or the only one.",
        at_least=1,
        only=OF_A_LAYER,
    )
    heads: tuple[str, ...] = option(
        (), "Heads for head and alignment, from 1, joined by commas. Default: all.", only=OF_A_LAYER
    )


class Lines(OfALayer):
    """Heads of one layer as lines between words."""

    from_word: str | None = option(
        None,
        "For head: draw the lines of this word alone. Default: all.",
        only={"picture": ("head",)},
    )

    def measure(self, model: str, search: Mapping):
        attended = self.attended(model, search)
        rows = rows_of(attended, self.from_word)
        chosen = (attended.layer(self.layer), attended.heads(self.heads), rows)
        return functools.partial(draw_lines, attended, *chosen)


class Matrix(OfALayer):
    """A matrix of words."""

    def measure(self, model: str, search: Mapping):
        if self.stack not in (None, "cross"):
            raise ValueError(
                "--picture=alignment draws the attention of the decoder to the source. Received: "
                f"--stack={self.stack}. Leave it out, or take --picture=attention."
            )
        attended = dataclasses.replace(self, stack=None).attended(model, search)
        if attended.stack != "cross":
            raise ValueError(
                "--picture=alignment draws the attention of a translator to the source. Received: "
                f"{model}, which has the {TITLES[attended.stack]} alone. Try --picture=attention."
            )
        weights = attended.weights[attended.layer(self.layer)][attended.heads(self.heads)]
        return functools.partial(draw_matrix, attended.columns, attended.rows, weights.mean(axis=0))


def draw_maps(attended: Attended, theme: Theme):
    """Draw a grid of maps, with a row for each layer and a column for each head. All maps have the
    same scale; much attention is dark in the light theme, bright in the dark one.
    """
    layers, heads, height, width = attended.weights.shape
    side = float(np.clip(MAP_ROW * max(height, width), *SIDES))
    has_room = side / max(height, width) >= MAP_ROW * 0.95
    rows, columns = map(shortened, (attended.rows, attended.columns))
    labels = max(width_of(word, SMALL - 1) for word in [*rows, *columns])
    margin = labels + 0.5 if has_room else 0.8
    title = f"{TITLES[attended.stack]}: {height} rows attend to {width} columns"
    wide = max(heads * (side + 0.15) + margin + 0.3, width_of(title) + 0.4)
    figure = new_figure(wide, layers * (side + 0.15) + margin + 1.0)
    grid = figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True)
    for (layer, head), axes in np.ndenumerate(grid):
        weights = attended.weights[layer, head]
        image = axes.imshow(weights, cmap=shades(theme), vmin=0, vmax=1, aspect="auto")
        axes.tick_params(length=0, labelbottom=False, labelsize=SMALL - 1)
        if not layer:
            axes.set_title(f"head {head + 1}")
            axes.tick_params(labeltop=True)
        if not head:
            axes.set_ylabel(f"layer {layer + 1}")
        if has_room:
            axes.set_xticks(range(width), columns, rotation=90)
            axes.set_yticks(range(height), rows)
    figure.suptitle(title, fontsize=TEXT)
    bar = figure.colorbar(image, ax=grid, fraction=0.03, pad=0.01, aspect=40)
    bar.set_label("share of a row's attention")
    return figure


def rows_of(attended: Attended, word: str | None) -> list[int]:
    """Return the indices of the rows whose word is `word`; None: all."""
    rows = [row for row, text in enumerate(attended.rows) if word in (None, text)]
    if not rows:
        raise ValueError(
            "--from_word must be one of the words that attend: "
            f"{' '.join(attended.rows)}. Received: --from_word={word}."
        )
    return rows


def draw_lines(
    attended: Attended, layer: int, heads: Sequence[int], rows: Sequence[int], theme: Theme
):
    """Draw lines from the words that attend, on the left, to those attended to, on the right: a
    colour for each head, opacity by weight. `layer`, `heads` and `rows` are indices.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    figure, axes = _two_columns(attended)
    look = looks(theme, len(heads))
    shifts = np.linspace(-0.24, 0.24, len(heads)) if len(heads) > 1 else [0.0]
    weights = attended.weights[layer][list(heads)]
    strong = [place for place in np.argwhere(weights >= LEAST_LINE) if place[1] in set(rows)]
    # Strong lines are drawn last, over weak ones.
    strong.sort(key=lambda place: weights[tuple(place)])
    ends = [((0, row + shifts[h]), (1, column + shifts[h])) for h, row, column in strong]
    inks = [to_rgba(look[place[0]][0], min(weights[tuple(place)], 1.0)) for place in strong]
    styles = [look[place[0]][1] for place in strong]
    axes.add_collection(LineCollection(ends, linewidths=1.6, colors=inks, linestyles=styles))
    handles = [axes.plot([], [], style, color=ink, linewidth=3)[0] for ink, style in look]
    names = [f"head {head + 1}" for head in heads]
    columns = min(len(heads), int(figure.get_figwidth() / LEGEND))
    figure.legend(handles, names, loc="outside lower center", ncols=columns)
    axes.set_title(f"{TITLES[attended.stack]}, layer {layer + 1}")
    return figure


def _two_columns(attended):
    """Draw both columns of words. Lines between them go from x = 0 to x = 1."""
    sides = (shortened(attended.rows), shortened(attended.columns))
    widths = [max(width_of(word) for word in words) + 0.1 for words in sides]
    longest = max(map(len, sides))
    figure = new_figure(max(sum(widths) + BETWEEN, 5.0), ROW * longest + 1.1)
    axes = figure.add_subplot()
    for words, x, align in zip(sides, (-0.02, 1.02), ("right", "left"), strict=True):
        for place, text in enumerate(words):
            axes.text(x, place, text, ha=align, va="center", fontsize=TEXT)
    axes.set_xlim(-widths[0] / BETWEEN, 1 + widths[1] / BETWEEN)
    axes.set_ylim(longest - 0.4, -0.6)
    axes.set_axis_off()
    return figure, axes


def draw_matrix(columns: Sequence[str], rows: Sequence[str], weights: np.ndarray, theme: Theme):
    """Draw a grid of weights (T, S): T words attend to S words, and each row sums to 1."""
    rows, columns = map(shortened, (rows, columns))
    is_wide = len(columns) > FEW
    cell = 0.4 if is_wide else 0.8
    turned = 60 if is_wide else 30
    above = np.sin(np.deg2rad(turned)) * max(map(width_of, columns))
    beside = np.cos(np.deg2rad(turned)) * width_of(columns[-1])
    grid = max(cell * len(columns) + beside, width_of(LABEL))
    figure = new_figure(max(map(width_of, rows)) + grid + 0.3, above + 0.34 * len(rows) + 0.7)
    axes = figure.add_subplot()
    axes.imshow(weights, cmap=shades(theme), vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(
        range(len(columns)), columns, rotation=turned, ha="left", rotation_mode="anchor"
    )
    axes.set_yticks(range(len(rows)), rows)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=10)
    for row, column in np.argwhere(weights >= LEAST_NUMBER):
        share = weights[row, column]
        label = f"{share:.2f}".lstrip("0") if is_wide else f"{share:.2f}"
        colour = ink_on(theme, share)
        axes.text(column, row, label, ha="center", va="center", color=colour, fontsize=SMALL)
    axes.set_xlabel(LABEL)
    return figure
