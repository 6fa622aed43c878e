"""What a model knows positions by, as numbers (Vaswani et al. 2017, section 3.5).

Each way of `--positions` has a function here that gives its maps.
"""

import dataclasses

import numpy as np
from keras import ops

from keras_transformer.layers.embedding import sinusoidal_positions
from keras_transformer.models import Transformer


@dataclasses.dataclass(frozen=True)
class Map:
    """Numbers by two axes.

    Attributes:
        title: what they are.
        values: (rows, columns).
        rows, columns: the names of the axes.
        first_row, first_column: what the axes begin to count from.
    """

    title: str
    values: np.ndarray
    rows: str
    columns: str
    first_row: int = 0
    first_column: int = 0


# How many positions to look at.
LENGTH = 64


def maps_of(model: Transformer, length: int = LENGTH) -> list[Map]:
    """The maps of a model's positions.

    Args:
        model: a built model.
        length: how many positions to look at.

    Raises:
        ValueError: if the model knows no positions.
    """
    return KINDS[model.hyperparameters.positions](model, length)


def _encoding(model, length):
    width = model.hyperparameters.d_model
    nothing = np.zeros((1, length, width), np.float32)
    maps = []
    # Source and target have one embedding, or one each.
    for embedding in dict.fromkeys((model.source_embedding, model.embedding)):
        added = embedding.encoding.added(nothing, ops.arange(length)[None])
        table = ops.convert_to_numpy(ops.cast(added, "float32"))[0]
        maps += [
            Map(f"encoding in {embedding.name}", table, "position", "component"),
            Map("dot products of positions", table @ table.T, "position", "position"),
        ]
    return maps


def _relative(model, length):
    def bias(attention, row):
        nothing = np.zeros((1, attention.num_heads, length, attention.d_k), np.float32)
        return ops.convert_to_numpy(attention.heads.positions.score_bias(nothing, nothing))[:, row]

    # The middle of a sequence sees both directions; a decoder sees what lies after its end.
    rows = {"encoder": length // 2, "decoder": length - 1}
    return [
        Map(
            f"{stack}, layer {number}: bias",
            bias(layer.self_attention, rows[stack]),
            "head",
            "distance of the key",
            first_row=1,
            first_column=-rows[stack],
        )
        for stack, number, layer in _layers(model)
    ]


def _shaw(model, length):
    def vectors(positions, stack):
        seen = {"encoder": None, "decoder": positions.clip + 1}[stack]
        return positions.keys.numpy()[:seen].T

    maps = []
    for stack, number, layer in _layers(model):
        positions = layer.self_attention.heads.positions
        title = f"{stack}, layer {number}: added to the key"
        axes = ("component", "distance of the key")
        values = vectors(positions, stack)
        maps.append(Map(title, values, *axes, first_column=-positions.clip))
    return maps


def _rotary(model, length):
    width = model.decoder.layers[0].self_attention.d_k
    turns = ops.convert_to_numpy(sinusoidal_positions(ops.arange(length), width))
    title = "cosine of the angle between two positions"
    return [Map(title, turns[:, 1::2].T, "pair of components", "distance")]


def _none(model, length):
    raise ValueError(
        "--picture=positions: the model knows no positions (positions='none'). Name the run of "
        "another model."
    )


def _layers(model):
    """(stack, number, layer) of all layers."""
    for stack, layers in (("encoder", model.encoder.layers), ("decoder", model.decoder.layers)):
        yield from ((stack, number, layer) for number, layer in enumerate(layers, 1))


KINDS = {
    "sinusoidal": _encoding,
    "learned": _encoding,
    "relative": _relative,
    "shaw": _shaw,
    "rotary": _rotary,
    "none": _none,
}
