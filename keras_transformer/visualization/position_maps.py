"""Maps of how a model encodes positions (Vaswani et al. 2017, section 3.5)."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np

from keras_transformer.visualization.theme import Theme, new_figure, shades
from pipelines.options import Options

# Number of positions in a map.
LENGTH = 64
MOST_COLUMNS = 3


class Positions(Options):
    """How the model knows positions."""

    def measure(self, model: str, search: Mapping):
        from keras_transformer.visualization.model_reading import trained_model

        trained, _, _ = trained_model(model, "positions")
        return functools.partial(draw, maps_of(trained))


@dataclasses.dataclass(frozen=True)
class Map:
    """A matrix with the names of its two axes and the number of its first row and column."""

    title: str
    values: np.ndarray
    rows: str
    columns: str
    first_row: int = 0
    first_column: int = 0


def maps_of(model, length: int = LENGTH) -> list[Map]:
    """Return the maps of the first positions of a built `Transformer`."""
    return list(KINDS[model.hyperparameters.positions](model, length))


def _encoding(model, length):
    from keras import ops

    zeros = np.zeros((1, length, model.hyperparameters.d_model), np.float32)
    # Source and target may share one embedding.
    for embedding in dict.fromkeys((model.source_embedding, model.embedding)):
        added = embedding.encoding.added(zeros, ops.arange(length)[None])
        table = ops.convert_to_numpy(ops.cast(added, "float32"))[0]
        yield Map(f"encoding in {embedding.name}", table, "position", "component")
        yield Map("dot products of positions", table @ table.T, "position", "position")


def _relative(model, length):
    # Show the middle row of an encoder, which sees both sides, and the last row of a decoder.
    rows = {"encoder": length // 2, "decoder": length - 1}
    for stack, number, attention in _self_attentions(model):
        zeros = np.zeros((1, attention.num_heads, length, attention.d_k), np.float32)
        row = rows[stack]
        bias = np.asarray(attention.heads.positions.score_bias(zeros, zeros))[:, row]
        title = f"{stack}, layer {number}: bias"
        axes = ("head", "distance of the key")
        yield Map(title, bias, *axes, first_row=1, first_column=-row)


def _shaw(model, length):
    for stack, number, attention in _self_attentions(model):
        positions = attention.heads.positions
        # A decoder sees no later keys.
        end = {"encoder": None, "decoder": positions.clip + 1}[stack]
        vectors = positions.keys.numpy()[:end].T
        title = f"{stack}, layer {number}: added to the key"
        axes = ("component", "distance of the key")
        yield Map(title, vectors, *axes, first_column=-positions.clip)


def _rotary(model, length):
    from keras import ops

    from keras_transformer.layers.embedding import sinusoidal_positions

    width = model.decoder.layers[0].self_attention.d_k
    turns = ops.convert_to_numpy(sinusoidal_positions(ops.arange(length), width))
    title = "cosine of the angle between two positions"
    return [Map(title, turns[:, 1::2].T, "pair of components", "distance")]


def _none(model, length):
    raise ValueError(
        "--picture=positions: the model knows no positions (positions='none'). Name the run of "
        "another model."
    )


def _self_attentions(model):
    """Yield (stack, number, attention) of all layers."""
    for stack, layers in (("encoder", model.encoder.layers), ("decoder", model.decoder.layers)):
        for number, layer in enumerate(layers, 1):
            yield stack, number, layer.self_attention


# By the choices of --positions.
KINDS = {
    **dict.fromkeys(("sinusoidal", "tensor2tensor", "marian_mt", "learned"), _encoding),
    **dict.fromkeys(("relative", "alibi"), _relative),
    "shaw": _shaw,
    "rotary": _rotary,
    "none": _none,
}


def draw(maps: Sequence[Map], theme: Theme):
    """Draw a panel for each map. Positive and negative numbers differ in colour; 0 is the paper."""
    columns = min(len(maps), MOST_COLUMNS)
    lines = -(-len(maps) // columns)
    figure = new_figure(4.6 * columns, (3.8 if lines == 1 else 2.6) * lines)
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    for matrix, axes in zip(maps, panels, strict=False):
        _draw_panel(figure, axes, matrix, theme)
    for axes in panels[len(maps) :]:
        axes.set_axis_off()
    return figure


def _draw_panel(figure, axes, matrix, theme):
    from matplotlib.ticker import MaxNLocator

    height, width = matrix.values.shape
    most = np.abs(matrix.values).max() or 1.0
    left = matrix.first_column - 0.5
    top = matrix.first_row - 0.5
    image = axes.imshow(
        matrix.values,
        cmap=shades(theme, "opposites"),
        vmin=-most,
        vmax=most,
        aspect="auto",
        interpolation="nearest",
        extent=(left, left + width, top + height, top),
    )
    axes.set(title=matrix.title, xlabel=matrix.columns, ylabel=matrix.rows)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    figure.colorbar(image, ax=axes)
