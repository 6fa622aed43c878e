"""Training that starts from another model's weights (Vaswani et al. 2017, section 3.4: the tables
of embeddings and projection are the weights whose rows belong to a vocabulary).
"""

import dataclasses
from collections.abc import Mapping, Sequence

import keras
import numpy as np

from keras_transformer.training.checkpoint import WEIGHTS

# Whose pieces the rows of a table stand for, where source and target have vocabularies of their
# own. The first table is in every model; the others where they are not tied to it.
SIDES = {
    "embedding/table": "target",
    "source_embedding/table": "source",
    "projection/table": "target",
    "output_bias/bias": "target",
}
TABLES = {f"{WEIGHTS}{name}": side for name, side in SIDES.items()}
TABLE = next(iter(TABLES))
NAMED = 3


@dataclasses.dataclass(frozen=True)
class Initialization:
    """What became of the rows of the embedding table, the target's if each side has one.

    Attributes:
        copied_rows: pieces that the other model knew.
        new_rows: pieces that keep their fresh initialization.
    """

    copied_rows: int
    new_rows: int


def initialize(
    model: keras.Model,
    weights: Mapping[str, np.ndarray],
    pieces: Mapping[str, Sequence[str]] | None = None,
    old_pieces: Mapping[str, Sequence[str]] | None = None,
    layers: Sequence[str] | None = None,
) -> Initialization:
    """Set a model's weights to those of another of the same sizes, which may have another
    vocabulary. The optimizer stays as it is.

    Args:
        model: a built `keras.Model`.
        weights: arrays by name, as `checkpoint.weights_of` gives them.
        pieces: the model's vocabulary: of "source" and of "target", V strings by id; None: it has
            that of the other model.
        old_pieces: the other model's, likewise.
        layers: names of the layers of the model that get the other's weights; the rest of either is
            left as it is, such as the heads of two tasks. None: all.

    Returns:
        An `Initialization`.

    Raises:
        ValueError: naming what does not fit, before anything is set.
    """
    if (pieces is None) != (old_pieces is None):
        given, lacking = (
            ("pieces", "old_pieces") if old_pieces is None else ("old_pieces", "pieces")
        )
        raise ValueError(
            f"`{lacking}` must come with `{given}`. Received: {lacking}=None. Pass both, or "
            "neither for one vocabulary."
        )
    variables = _within(layers, {WEIGHTS + one.path: one for one in model.weights})
    weights = _within(layers, weights)
    fitted = dict(weights)
    copied_rows = {}
    for name, side in TABLES.items() if pieces is not None else ():
        if _width(variables.get(name)) != _width(weights.get(name)) or name not in variables:
            continue
        table = np.array(np.asarray(keras.ops.stop_gradient(variables[name])))
        _refuse_other_length("pieces", pieces[side], table)
        _refuse_other_length("old_pieces", old_pieces[side], weights[name])
        copied = shared_rows(pieces[side], old_pieces[side])
        table[[row for row, _ in copied]] = weights[name][[old_row for _, old_row in copied]]
        fitted[name] = table
        copied_rows[name] = len(copied)
    _refuse_misfits(variables, fitted, pieces is not None)
    for name, variable in variables.items():
        variable.assign(fitted[name])
    rows = len(fitted.get(TABLE, ()))
    copied_rows = copied_rows.get(TABLE, rows)
    return Initialization(copied_rows, rows - copied_rows)


def shared_rows(pieces: Sequence[str], old_pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Find the pieces that two vocabularies share.

    Returns:
        (id, old id) of each, ids ascending.
    """
    old_id = {piece: number for number, piece in enumerate(old_pieces)}
    return [(number, old_id[piece]) for number, piece in enumerate(pieces) if piece in old_id]


def _within(layers, named):
    """What belongs to some layers, of things by the names of weights."""
    if layers is None:
        return named
    return {
        name: one
        for name, one in named.items()
        if name.removeprefix(WEIGHTS).partition("/")[0] in layers
    }


def _width(table):
    return None if table is None else tuple(table.shape[1:])


def _refuse_other_length(name, pieces, table):
    if len(pieces) != len(table):
        raise ValueError(
            f"`{name}` must name the {len(table)} rows of the embedding table. Received: "
            f"{len(pieces)} pieces. "
            "Pass the vocabulary that the model was made for."
        )


def _refuse_misfits(variables, weights, has_vocabularies):
    shapes, expected = (
        {name: tuple(array.shape) for name, array in named.items()}
        for named in (weights, variables)
    )
    misfits = [name for name in {**expected, **shapes} if shapes.get(name) != expected.get(name)]
    if misfits:
        told = [
            f"{name} is {shapes.get(name, 'missing')}, not {expected.get(name, 'in the model')}"
            for name in misfits[:NAMED]
        ]
        if len(misfits) > NAMED:
            told.append(f"and {len(misfits) - NAMED} more")
        if not set(misfits) <= set(TABLES):
            remedy = "Give the model the sizes of the other"
        elif has_vocabularies:
            remedy = "Pass the --tie_embeddings of the other"
        else:
            remedy = "Pass both vocabularies, `pieces` and `old_pieces`"
        raise ValueError(
            "`weights` must have the names and shapes of the model's. Received: "
            f"{'; '.join(told)}. {remedy}."
        )
