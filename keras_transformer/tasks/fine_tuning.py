"""A new run that starts from another's weights: `--init_from`."""

import dataclasses
from collections.abc import Mapping

import keras

from keras_transformer.models import Hyperparameters
from keras_transformer.runs.starting_point import hyperparameters_of, starting_point
from keras_transformer.tasks.task import Task
from keras_transformer.training import initialization
from pipelines.vocabularies import pieces_by_side

# What the shapes of weights do not tell.
WITHOUT_A_SHAPE = ("positions", "norm", "activation", "attention", "scaled_embeddings")
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Hyperparameters)}


def start_from(path: str, task: Task, model: keras.Model) -> None:
    """Set the weights of a new model, and say what they come from.

    Args:
        path: what `starting_point` reads.
        task: of the new run.
        model: its model.

    Raises:
        FileNotFoundError: if there is nothing there.
        ValueError: if it does not fit.
    """
    weights, old = starting_point(path)
    now = task.description().get("hyperparameters", {})
    before = hyperparameters_of(path)
    refuse_other_heads(before, now, path)
    if told := differences(before, now):
        print(f"warning: what {path} has learned may not fit this model: {'; '.join(told)}.")
    if task.pieces is None:
        initialization.initialize(model, weights, layers=task.carried_over)
        print(f"from {path}: its weights")
        return
    if old is None:
        raise ValueError(
            f"{path} has no vocabulary.model: its embeddings cannot be told apart. Name the "
            "folder of its run."
        )
    report = initialization.initialize(
        model, weights, task.pieces, pieces_by_side(old), task.carried_over
    )
    print(
        f"from {path}: {report.copied_rows:,} pieces keep their embeddings, "
        f"{report.new_rows:,} are new"
    )


def refuse_other_heads(before: Mapping, now: Mapping, path: str) -> None:
    """Refuse another number of heads: unless d_k is given, the shapes of the weights do not show
    it, and each head would get parts of several.

    Args:
        before, now: see `differences`.
        path: of the old model, for the error.

    Raises:
        ValueError: if the numbers differ.
    """
    heads = before.get("num_heads")
    if heads and now.get("num_heads", heads) != heads:
        raise ValueError(
            f"--num_heads must be {heads}, as it was for {path}: its weights are those of so many "
            f"heads. Received: num_heads={now['num_heads']}. Pass --num_heads={heads}."
        )


def differences(before: Mapping, now: Mapping) -> list[str]:
    """What differs between two models whose weights have the same shapes, in words.

    Args:
        before: hyperparameters of the old model; {} if nothing is known of it. One that an
            earlier version did not write has its default.
        now: those of the new model.
    """
    if not before:
        return []
    was = {name: before.get(name, DEFAULTS[name]) for name in WITHOUT_A_SHAPE}
    return [
        f"{name} was {was[name]}, now {now[name]}"
        for name in WITHOUT_A_SHAPE
        if name in now and now[name] != was[name]
    ]
