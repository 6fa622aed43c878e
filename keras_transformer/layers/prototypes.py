"""Parts that a layer is handed as objects: which attention, which positions (the choices of
section 3, Vaswani et al. 2017).

A stack gives each of its layers the same object. So what it is handed is a prototype, and each
layer makes a part of its own like it, with weights of its own.
"""

from typing import Any

import keras


class Part(keras.layers.Layer):
    """What is handed to a layer, which makes one `like` it."""

    def get_config(self):
        # Keras would make up a config from the arguments, and refuses a dtype policy among them.
        return super().get_config()


def like(prototype: Part | dict[str, Any], dtype: keras.DTypePolicy, name: str) -> Part:
    """A new part with the arguments of another.

    Args:
        prototype: a part, or its `described`.
        dtype: the new layer's dtype policy.
        name: the new layer's name.
    """
    description = prototype if isinstance(prototype, dict) else described(prototype)
    kind = keras.saving.get_registered_object(description["class_name"])
    # Not by `from_config`, which keeps no more than the name of a policy of our own.
    return kind(**{**description["config"], "dtype": dtype, "name": name})


def described(part: Part) -> dict[str, Any]:
    """What makes a part like this one, for a config: its class's registered name and its config."""
    return {
        "class_name": keras.saving.get_registered_name(type(part)),
        "config": part.get_config(),
    }
