"""Which weights learn: all of them, as in Vaswani et al. 2017, section 5.3; all but some layers; or
small matrices added to those of a trained model (Hu et al. 2021, "LoRA: Low-Rank Adaptation of
Large Language Models", section 4.1).
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
        model: the model, whose layers' `Kernel`s can have adapters.
        values: those of the flags "freeze", "lora_rank", "lora_on" and "lora_alpha".
        ends: the ends of the names of an adapter's weights.
        set_layers: names of the layers that --init_from sets; None: all. The other layers learn.
    """
    if rank := values["lora_rank"]:
        alpha = rank if values["lora_alpha"] is None else values["lora_alpha"]
        maps = [matrix for matrix in kernels(model) if is_within(matrix[0], set_layers)]
        adapt(maps, rank, values["lora_on"], alpha / rank, ends)
        for variable in model.trainable_variables:
            if is_within(variable.path, set_layers) and not variable.path.endswith(tuple(ends)):
                variable.trainable = False
    freeze(model, values["freeze"])


def freeze(model: keras.Model, patterns: Sequence[str]) -> None:
    """Freeze the weights whose path, or that of a layer around them, matches a pattern."""
    named = {variable.path: variable for variable in model.trainable_variables}
    for pattern in patterns:
        matching = [path for path in named if fnmatch.filter(_prefixes(path), pattern)]
        if not matching:
            layers = dict.fromkeys(layer for path in named for layer in [*_prefixes(path)][:-1])
            raise ValueError(
                f"--freeze={pattern} is no layer or weight of this model. It has "
                f"{_listed(layers)}. Name some of these."
            )
        for path in matching:
            named[path].trainable = False
    if not model.trainable_variables:
        raise ValueError(
            f"--freeze={','.join(patterns)} leaves nothing to learn: it matches all weights. Name "
            "fewer layers."
        )


def is_within(path: str, layers: Sequence[str] | None) -> bool:
    """Say whether a weight's path begins with one of these layers; None: all."""
    return layers is None or path.partition("/")[0] in layers


def adapt(
    maps: Sequence[tuple], rank: int, patterns: Sequence[str], scale: float, ends: Sequence[str]
) -> None:
    """Add adapters of a rank to those `kernels` that match a pattern: see `Kernel.adapt`."""
    # By path without "kernel": "a/query" for "a/query_kernel", "a/inner" for "a/inner/kernel".
    named = {
        path.removesuffix("kernel").rstrip("_/"): (layer, kernel) for path, layer, kernel in maps
    }
    adapted = set()
    for pattern in patterns:
        # The ends of a path at its slashes match.
        matching = [name for name in named if fnmatch.fnmatch(f"/{name}", f"*/{pattern}")]
        if not matching:
            kinds = dict.fromkeys(name.rpartition("/")[2] for name in named)
            raise ValueError(
                f"--lora_on={pattern} is no matrix of this model to adapt. It has "
                f"{_listed(kinds)}. Name some of these."
            )
        adapted.update(matching)
    for name, (layer, kernel) in named.items():
        if name in adapted:
            kernel.adapt(layer, rank, scale, ends)


def parameters_in_words(model: keras.Model) -> str:
    """Say how many parameters there are, and how many learn if not all do."""
    learned = sum(math.prod(variable.shape) for variable in model.trainable_variables)
    words = f"{model.count_params():,} parameters"
    return words if learned == model.count_params() else f"{words}, {learned:,} of them learn"


def _prefixes(path):
    """Yield the paths of the layers around a weight, the outermost first, and its own."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def _listed(names):
    shown = [*names][:MOST_NAMED]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return ", ".join(shown) + more
