"""Training that starts from another model's weights, by --init_from (section 3.4 of Vaswani et al.
2017: the tables of embeddings and projection are the weights whose rows belong to a vocabulary).
"""

import collections
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence

import keras
import numpy as np

from keras_transformer.models import Hyperparameters
from keras_transformer.runs.description import task_of
from keras_transformer.runs.model_path import ModelPath, hyperparameters_of, starting_point
from keras_transformer.training.checkpoint import WEIGHTS, adapters_in, with_adapter
from keras_transformer.training.embedding_start import SIDES
from pipelines.vocabularies import parts_by_side, pieces_by_side

TABLES = {f"{WEIGHTS}{name}": side for name, side in SIDES.items()}
TABLE = next(iter(TABLES))
NAMED = 3
# What the shapes of weights do not tell.
WITHOUT_A_SHAPE = ("positions", "first_position", "norm", "activation", "attention")
WITHOUT_A_SHAPE += ("scaled_embeddings", "source_end")
# What is added to a model that was trained without it.
ADDED = f"{WEIGHTS}proposal_heads/"
LAYER = re.compile(rf"{WEIGHTS}(encoder|decoder)/layer_(\d+)/")
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Hyperparameters)}


def start_from(path: str, task, model: keras.Model, adapter: str | None = None) -> None:
    """Set the weights of a new model of a `Task` to what `starting_point` reads at a path, with an
    adapter added if one is named, and say what they come from.
    """
    weights, old = starting_point(path)
    weights = with_adapter(weights, adapter) if adapter else weights
    now = task.description().get("hyperparameters", {})
    before = hyperparameters_of(path)
    refuse_other_heads(before, now, path)
    if told := differences(before, now):
        print(f"warning: what {path} has learned may not fit this model: {'; '.join(told)}.")
    weights, layers = fewer_layers(weights, [WEIGHTS + one.path for one in model.weights])
    if task.pieces is None:
        initialize(model, weights, layers=task.carried_over)
        print(f"from {path}: its weights{layers}")
        return
    if old is None:
        raise ValueError(
            f"{path} has no vocabulary.model: its embeddings cannot be told apart. Name the "
            "folder of its run."
        )
    pieces = (task.pieces, pieces_by_side(old))
    try:
        report = initialize(model, weights, *pieces, task.carried_over, parts_by_side(old))
    except ValueError as error:
        other = task_of(ModelPath.of(path).describe())
        raise ValueError(
            f"{path}, of the task {other}, does not fit a model of the task {task.name}: {error}"
        ) from error
    of_parts = f", {report.mean_rows:,} of them a mean of their parts" if report.mean_rows else ""
    print(
        f"from {path}: {report.copied_rows:,} pieces keep their embeddings, "
        f"{report.new_rows:,} are new{of_parts}{layers}"
    )


def fewer_layers(weights: Mapping[str, np.ndarray], names: Sequence[str]) -> tuple[dict, str]:
    """The weights of a deeper model by the `names` of a shallower one's, and what was left, in
    words: of N layers of a stack n at equal distances stay, the first for n = 1 (Shleifer and Rush
    2020, "Pre-trained Summarization Distillation", section 3). A stack that is as deep stays whole.
    """
    few = _depths(names)
    many = _depths(weights)
    taken = {stack: _spaced(few[stack], many[stack]) for stack in few if few[stack] < many[stack]}
    kept = {}
    for name, array in weights.items():
        layer = LAYER.match(name)
        if not layer or layer[1] not in taken:
            kept[name] = array
        elif int(layer[2]) in taken[layer[1]]:
            place = taken[layer[1]].index(int(layer[2]))
            kept[f"{WEIGHTS}{layer[1]}/layer_{place}/{name[layer.end() :]}"] = array
    told = [
        f"; of {many[stack]} layers of the {stack} {', '.join(map(str, layers))}"
        for stack, layers in taken.items()
    ]
    return kept, "".join(told)


def _depths(names):
    """The number of layers of each stack."""
    layers = dict.fromkeys(layer.groups() for name in names if (layer := LAYER.match(name)))
    return collections.Counter(stack for stack, _ in layers)


def _spaced(few, many):
    return [layer * (many - 1) // max(few - 1, 1) for layer in range(few)]


def refuse_other_heads(before: Mapping, now: Mapping, path: str) -> None:
    """Refuse another number of heads: unless d_k is given, the shapes of the weights do not show
    it, and each head would get parts of several.
    """
    heads = before.get("num_heads")
    if heads and now.get("num_heads", heads) != heads:
        raise ValueError(
            f"--num_heads must be {heads}, as it was for {path}: its weights are those of so many "
            f"heads. Received: num_heads={now['num_heads']}. Pass --num_heads={heads}."
        )


def differences(before: Mapping, now: Mapping) -> list[str]:
    """What differs between the hyperparameters of two models whose weights have the same shapes, in
    words. Nothing is known of the old model if it has none; one that an earlier version did not
    write has its default.
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
    """What became of the rows of the embedding table, the target's if each side has one: how many
    pieces the other model knew, how many it did not, and how many of these begin as the mean of the
    pieces that it would cut them into. The rest keep their fresh initialization.
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
    """Set a model's weights to those of another of the same sizes, which may have another
    vocabulary. The optimizer stays as it is. What does not fit is refused before anything is set.

    `pieces` are the model's vocabulary: of "source" and of "target", V strings by id; None: it has
    that of the other model, `old_pieces`. Only `layers`, by name, get the other's weights, if any
    are named. `parts` cut a piece into ids of the other vocabulary, of "source" and of "target".
    """
    if (pieces is None) != (old_pieces is None):
        lacking = "pieces" if pieces is None else "old_pieces"
        raise ValueError(
            f"`pieces` and `old_pieces` must come together. Received: {lacking}=None. Pass both, "
            "or neither for one vocabulary."
        )
    named = {WEIGHTS + one.path: one for one in model.weights}
    added = [name for name in named if name.startswith(ADDED) and name not in weights]
    own = {*adapters_in(named), *added}
    variables = _within(layers, {name: named[name] for name in named if name not in own})
    weights = _within(layers, weights)
    fitted = dict(weights)
    copied_rows = {}
    mean_rows = {}
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
                f"{len(table) - len(copied):,} of {len(table):,} pieces are new, and would stay as "
                "they begin, for embeddings do not learn with --lora_rank or this --freeze. Take "
                "the vocabulary of the other by --vocabulary_from, or let the embeddings learn."
            )
        table[[row for row, _ in copied]] = weights[name][[old_row for _, old_row in copied]]
        means = _means(pieces[side], dict(copied), (parts or {}).get(side), weights[name])
        for row, mean in means.items():
            table[row] = mean
        fitted[name] = table
        copied_rows[name] = len(copied)
        mean_rows[name] = len(means)
    _refuse_misfits(variables, fitted, pieces is not None)
    for name, variable in variables.items():
        variable.assign(fitted[name])
    rows = len(fitted.get(TABLE, ()))
    copied_rows = copied_rows.get(TABLE, rows)
    return Initialization(copied_rows, rows - copied_rows, mean_rows.get(TABLE, 0))


def shared_rows(pieces: Sequence[str], old_pieces: Sequence[str]) -> list[tuple[int, int]]:
    """(id, old id) of each piece that two vocabularies share, ids ascending. Of two pieces that are
    written alike, such as Marian's own <s> beside ours, the first is the first of the other.
    """
    old_id = {name: number for number, name in enumerate(_numbered(old_pieces))}
    return [
        (number, old_id[name]) for number, name in enumerate(_numbered(pieces)) if name in old_id
    ]


def _numbered(pieces):
    """Each piece, and how many before it are written as it is."""
    seen = collections.Counter()
    for piece in pieces:
        yield piece, seen[piece]
        seen[piece] += 1


def _means(pieces, copied, parts, old_table):
    """The mean of the old rows of its parts, for each row that is not copied and has parts."""
    if parts is None:
        return {}
    cut = {row: parts(piece) for row, piece in enumerate(pieces) if row not in copied}
    return {row: old_table[ids].mean(axis=0) for row, ids in cut.items() if ids}


def _within(layers, named):
    if layers is None:
        return named
    return {
        name: one
        for name, one in named.items()
        if name.removeprefix(WEIGHTS).partition("/")[0] in layers
    }


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
