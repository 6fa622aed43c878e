"""Parts that a layer is handed as objects: which attention, which positions (the choices of
section 3, Vaswani et al. 2017).

A stack gives each of its layers the same object. So what it is handed is a prototype, and each
layer makes a part of its own like it, with weights of its own.
"""

from typing import Any

import keras


def like(
    prototype: keras.layers.Layer | dict[str, Any], dtype: keras.DTypePolicy, name: str
) -> keras.layers.Layer:
    """A new layer with the arguments of another.

    Args:
        prototype: a layer, or its `described`.
        dtype: the new layer's dtype policy.
        name: the new layer's name.
    """
    description = prototype if isinstance(prototype, dict) else described(prototype)
    kind = keras.saving.get_registered_object(description["class_name"])
    own = {"dtype": keras.dtype_policies.serialize(dtype), "name": name}
    return kind.from_config({**description["config"], **own})


def described(part: keras.layers.Layer) -> dict[str, Any]:
    """What makes a part like this one, for a config: its class's registered name and its config."""
    return {
        "class_name": keras.saving.get_registered_name(type(part)),
        "config": part.get_config(),
    }
