"""Which weights learn: all of them, as in Vaswani et al. 2017, section 5.3; all but some layers; or
small matrices beside those of a trained model (Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large
Language Models", section 4.1).
"""

import fnmatch
import math
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from keras_transformer.layers.linear_maps import kernels

MOST_NAMED = 40


def choose_learned(
    model: keras.Model,
    values: Mapping[str, Any],
    ends: Sequence[str],
    set_layers: Sequence[str] | None = None,
) -> None:
    """Decide which weights of a built model learn, before its optimizer is built: the others have
    no gradients and no slots.

    Args:
        model: `Kernel`s of its layers are adapted.
        values: of the flags "freeze", "lora_rank", "lora_on", "lora_alpha" and "init_from".
        ends: of the names of an adapter's weights.
        set_layers: names of the layers that --init_from sets; None: all. Others learn.
    """
    if rank := values["lora_rank"]:
        if values["freeze"] or not values["init_from"]:
            raise ValueError(
                "--lora_rank adapts the model that --init_from names, all of which stays as it is. "
                f"Received: --init_from={values['init_from'] or ''}, "
                f"--freeze={','.join(values['freeze'])}. Pass --init_from, and leave --freeze out."
            )
        alpha = rank if values["lora_alpha"] is None else values["lora_alpha"]
        adapt(model, rank, values["lora_on"], alpha / rank, ends)
        for variable in model.trainable_variables:
            is_set = set_layers is None or variable.path.partition("/")[0] in set_layers
            if is_set and not variable.path.endswith(tuple(ends)):
                variable.trainable = False
    freeze(model, values["freeze"])


def freeze(model: keras.Model, patterns: Sequence[str]) -> None:
    """Let the weights stay whose path, or that of a layer around them, matches a pattern."""
    named = {variable.path: variable for variable in model.trainable_variables}
    for pattern in patterns:
        found = [path for path in named if fnmatch.filter(_around(path), pattern)]
        if not found:
            layers = dict.fromkeys(one for path in named for one in [*_around(path)][:-1])
            raise ValueError(
                f"--freeze={pattern} is no layer or weight of this model. It has "
                f"{_listed(layers)}. Name some of these."
            )
        for path in found:
            named[path].trainable = False
    if not model.trainable_variables:
        raise ValueError(
            f"--freeze={','.join(patterns)} leaves nothing to learn: it matches all weights. Name "
            "fewer layers."
        )


def adapt(
    model: keras.Model, rank: int, patterns: Sequence[str], scale: float, ends: Sequence[str]
) -> None:
    """Give the matrices that match a pattern adapters of a rank: see `Kernel.adapt`."""
    # A matrix by its part: of "a/query_kernel" a/query, of "a/inner/kernel" a/inner.
    named = {
        path.removesuffix("kernel").rstrip("_/"): (layer, kernel)
        for path, layer, kernel in kernels(model)
    }
    found = set()
    for pattern in patterns:
        of_it = [name for name in named if fnmatch.filter(_ends(name), pattern)]
        if not of_it:
            kinds = dict.fromkeys(name.rpartition("/")[2] for name in named)
            raise ValueError(
                f"--lora_on={pattern} is no matrix of this model. It has {_listed(kinds)}. Name "
                "some of these."
            )
        found.update(of_it)
    for name, (layer, kernel) in named.items():
        if name in found:
            kernel.adapt(layer, rank, scale, ends)


def parameters_in_words(model: keras.Model) -> str:
    """How many parameters there are, and how many learn if not all do."""
    learned = sum(math.prod(one.shape) for one in model.trainable_variables)
    every = f"{model.count_params():,} parameters"
    return every if learned == model.count_params() else f"{every}, {learned:,} of them learn"


def _around(path):
    """A path and those of the layers around it, the outermost first."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _ends(name):
    parts = name.split("/")
    return ("/".join(parts[place:]) for place in range(len(parts)))


def _listed(names):
    shown = [*names][:MOST_NAMED]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more
