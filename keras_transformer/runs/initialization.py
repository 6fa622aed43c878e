"""Training that starts from another model's weights, by --init_from. The rows of the embeddings and
of the projection (Vaswani et al. 2017, section 3.4) belong to the pieces of a vocabulary.
"""

import collections
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np

from keras_transformer.models import Hyperparameters
from keras_transformer.models.learned_part import is_within
from keras_transformer.runs.description import task_of
from keras_transformer.runs.model_path import ModelPath, starting_point
from keras_transformer.training.checkpoint import WEIGHTS, adapters_in, with_adapter
from keras_transformer.training.embedding_start import SIDES
from pipelines.vocabularies import parts_by_side, pieces_by_side

TABLES = {f"{WEIGHTS}{name}": side for name, side in SIDES.items()}
TABLE = next(iter(TABLES))
MOST_SHOWN = 3
# Hyperparameters that the shapes of the weights do not show.
WITHOUT_A_SHAPE = ("positions", "first_position", "norm", "activation", "attention")
WITHOUT_A_SHAPE += ("scaled_embeddings", "source_end")
# Weights that may be added to a model that was trained without them.
ADDED = f"{WEIGHTS}proposal_heads/"
LAYER = re.compile(rf"{WEIGHTS}(encoder|decoder)/layer_(\d+)/")
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Hyperparameters)}


def start_from(path: str, task, model: keras.Model, adapter: str | None = None) -> None:
    """Initialize a new model of a `Task` with the weights that `starting_point` reads at a path,
    plus an adapter's if one is named, and print what was copied.
    """
    weights, old = starting_point(path)
    description = ModelPath.of(path).describe()
    before = description.get("hyperparameters") or {}
    now = task.description().get("hyperparameters", {})
    refuse_other_heads(before, now, path)
    if changes := differences(before, now):
        print(f"warning: what {path} has learned may not fit this model: {'; '.join(changes)}.")
    names = [WEIGHTS + weight.path for weight in model.weights]
    chosen, layers = fewer_layers(weights, names)
    if adapter:
        try:
            chosen = with_adapter(chosen, adapter)
        except ValueError:  # It may be one of the whole model.
            chosen, _ = fewer_layers(with_adapter(weights, adapter), names)
    pieces = (None, None)
    parts = None
    if task.pieces is not None:
        if old is None:
            raise ValueError(
                f"{path} has no vocabulary.model: its embeddings cannot be told apart. Name the "
                "folder of its run."
            )
        pieces = (task.pieces, pieces_by_side(old))
        parts = parts_by_side(old)
    try:
        report = initialize(model, chosen, *pieces, task.carried_over, parts)
    except ValueError as error:
        raise ValueError(
            f"{path}, of the task {task_of(description)}, does not fit a model of the task "
            f"{task.name}: {error}"
        ) from error
    if task.pieces is None:
        print(f"from {path}: its weights{layers}")
        return
    of_parts = f", {report.mean_rows:,} of them a mean of their parts" if report.mean_rows else ""
    print(
        f"from {path}: {report.copied_rows:,} pieces keep their embeddings, "
        f"{report.new_rows:,} are new{of_parts}{layers}"
    )


def fewer_layers(weights: Mapping[str, np.ndarray], names: Sequence[str]) -> tuple[dict, str]:
    """Return a deeper model's weights under the `names` of a shallower one, and the choice of
    layers in words. From the N layers of a stack, n at equal distances are chosen, the first if
    n = 1 (Shleifer and Rush 2020, "Pre-trained Summarization Distillation", section 3).
    """
    few = _depths(names)
    many = _depths(weights)
    chosen = {stack: _spaced(few[stack], many[stack]) for stack in few if few[stack] < many[stack]}
    renamed = {}
    for name, array in weights.items():
        layer = LAYER.match(name)
        if not layer or layer[1] not in chosen:
            renamed[name] = array
        elif int(layer[2]) in chosen[layer[1]]:
            place = chosen[layer[1]].index(int(layer[2]))
            renamed[f"{WEIGHTS}{layer[1]}/layer_{place}/{name[layer.end() :]}"] = array
    choices = [
        f"; of {many[stack]} layers of the {stack} {', '.join(map(str, layers))}"
        for stack, layers in chosen.items()
    ]
    return renamed, "".join(choices)


def _depths(names):
    """Return the number of layers of each stack."""
    layers = dict.fromkeys(layer.groups() for name in names if (layer := LAYER.match(name)))
    return collections.Counter(stack for stack, _ in layers)


def _spaced(few, many):
    return [layer * (many - 1) // max(few - 1, 1) for layer in range(few)]


def refuse_other_heads(before: Mapping, now: Mapping, path: str) -> None:
    """Refuse another number of heads. Without d_k the shapes of the weights do not show it, and
    each head would get parts of several.
    """
    heads = before.get("num_heads")
    if heads and now.get("num_heads", heads) != heads:
        raise ValueError(
            f"--num_heads must be {heads}, as it was for {path}, whose weights belong to these "
            f"heads. Received: num_heads={now['num_heads']}. Pass --num_heads={heads}."
        )


def differences(before: Mapping, now: Mapping) -> list[str]:
    """Return, in words, the hyperparameters that differ between two models whose weights have the
    same shapes. Without any, the old model is unknown; one that an earlier version did not write
    has its default.
    """
    if not before:
        return []
    was = {name: before.get(name, DEFAULTS[name]) for name in WITHOUT_A_SHAPE}
    return [
        f"{name} was {was[name]}, now {now[name]}"
        for name in WITHOUT_A_SHAPE
        if name in now and now[name] != was[name]
    ]


@dataclasses.dataclass(frozen=True)
class Initialization:
    """Numbers of embedding rows, in the target's table if each side has one: of pieces that the old
    model has too, of new pieces, and of those new pieces that begin as the mean of the old pieces
    which they are cut into. The other new rows keep their random initialization.
    """

    copied_rows: int
    new_rows: int
    mean_rows: int = 0


def initialize(
    model: keras.Model,
    weights: Mapping[str, np.ndarray],
    pieces: Mapping[str, Sequence[str]] | None = None,
    old_pieces: Mapping[str, Sequence[str]] | None = None,
    layers: Sequence[str] | None = None,
    parts: Mapping[str, Callable[[str], Sequence[int]]] | None = None,
) -> Initialization:
    """Set a model's weights to those of an old model of the same sizes, which may have another
    vocabulary. The optimizer stays as it is. Misfits are refused before anything is set.

    `pieces` and `old_pieces` are the two vocabularies: for "source" and for "target", V strings by
    id; both None if the vocabulary is the same. If `layers` are named, only these get old weights.
    `parts`, for "source" and for "target", cut a piece into ids of the old vocabulary.
    """
    named = {WEIGHTS + variable.path: variable for variable in model.weights}
    added = [name for name in named if name.startswith(ADDED) and name not in weights]
    own = {*adapters_in(named), *added}
    inner = {name for name in (*named, *weights) if is_within(name.removeprefix(WEIGHTS), layers)}
    variables = {name: named[name] for name in named if name in inner and name not in own}
    weights = {name: weights[name] for name in weights if name in inner}
    counts = {}
    for name, side in TABLES.items() if pieces is not None else ():
        if name not in variables or name not in weights:
            continue
        if tuple(variables[name].shape[1:]) != weights[name].shape[1:]:
            continue
        table = np.array(np.asarray(keras.ops.stop_gradient(variables[name])))
        _refuse_other_length("pieces", pieces[side], table)
        _refuse_other_length("old_pieces", old_pieces[side], weights[name])
        copied = shared_rows(pieces[side], old_pieces[side])
        if len(copied) < len(table) and not variables[name].trainable:
            raise ValueError(
                f"{len(table) - len(copied):,} of {len(table):,} pieces are new, and their "
                "embeddings would not learn, because of --lora_rank or --freeze. Take the old "
                "vocabulary by --vocabulary_from, or let the embeddings learn."
            )
        table[[row for row, _ in copied]] = weights[name][[old_row for _, old_row in copied]]
        means = _means(pieces[side], dict(copied), (parts or {}).get(side), weights[name])
        for row, mean in means.items():
            table[row] = mean
        weights[name] = table
        counts[name] = (len(copied), len(means))
    _refuse_misfits(variables, weights, pieces is not None)
    for name, variable in variables.items():
        variable.assign(weights[name])
    rows = len(weights.get(TABLE, ()))
    copied_rows, mean_rows = counts.get(TABLE, (rows, 0))
    return Initialization(copied_rows, rows - copied_rows, mean_rows)


def shared_rows(pieces: Sequence[str], old_pieces: Sequence[str]) -> list[tuple[int, int]]:
    """Return (id, old id) of each piece that two vocabularies share, ids ascending. If one text is
    several pieces, such as Marian's own <s> beside ours, they are matched in their order.
    """
    old_id = {name: number for number, name in enumerate(_numbered(old_pieces))}
    return [
        (number, old_id[name]) for number, name in enumerate(_numbered(pieces)) if name in old_id
    ]


def _numbered(pieces):
    """Yield each piece, and the number of equal pieces before it."""
    counts = collections.Counter()
    for piece in pieces:
        yield piece, counts[piece]
        counts[piece] += 1


def _means(pieces, copied, parts, old_table):
    """Return, for each row that is not copied and has parts, the mean of its parts' old rows."""
    if parts is None:
        return {}
    cut = {row: parts(piece) for row, piece in enumerate(pieces) if row not in copied}
    return {row: old_table[ids].mean(axis=0) for row, ids in cut.items() if ids}


def _refuse_other_length(name, pieces, table):
    if len(pieces) != len(table):
        raise ValueError(
            f"`{name}` must name the {len(table)} rows of the embedding table. Received: "
            f"{len(pieces)} pieces. Pass the vocabulary that the model was made for."
        )


def _refuse_misfits(variables, weights, has_vocabularies):
    shapes, expected = (
        {name: tuple(array.shape) for name, array in named.items()}
        for named in (weights, variables)
    )
    misfits = [name for name in {**expected, **shapes} if shapes.get(name) != expected.get(name)]
    if misfits:
        received = [
            f"{name} is {shapes.get(name, 'missing')}, not {expected.get(name, 'in the model')}"
            for name in misfits[:MOST_SHOWN]
        ]
        if len(misfits) > MOST_SHOWN:
            received.append(f"and {len(misfits) - MOST_SHOWN} more")
        if not set(misfits) <= set(TABLES):
            remedy = "Give the model the sizes of the old one"
        elif has_vocabularies:
            remedy = "Pass the --tie_embeddings of the old model"
        else:
            remedy = "Pass both vocabularies, `pieces` and `old_pieces`"
        raise ValueError(
            "`weights` must have the names and shapes of the model's. Received: "
            f"{'; '.join(received)}. {remedy}."
        )
