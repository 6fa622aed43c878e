"""The configs of section 3's layers (Vaswani et al. 2017), and the parts that a layer takes as
objects, such as its attention and its positions.

A stack passes the same object to each of its layers. So the object is a prototype: each layer makes
its own part with the same arguments, and with its own weights.
"""

import inspect
import numbers
from typing import Any

import keras


class Layer(keras.layers.Layer):
    """A Keras layer that keeps each argument of its constructor as an attribute of the same name.
    These make up its config. A class with a `get_config` adds its own arguments there, for its
    subclasses too.
    """

    def _post_build(self):
        # Keras freezes the own weights of a layer made with trainable=False, but no sublayer's.
        super()._post_build()
        if not self.trainable:
            for layer in self._layers:
                layer.trainable = False

    def get_config(self):
        config = super().get_config()
        added = {"self"}
        # The base classes first: a subclass may name their arguments again.
        for kind in reversed(type(self).__mro__):
            if not issubclass(kind, Layer) or "__init__" not in vars(kind):
                continue
            for argument in inspect.signature(kind.__init__).parameters.values():
                is_named = argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
                if "get_config" in vars(kind):
                    added.add(argument.name)
                elif is_named and argument.name not in added:
                    config.setdefault(argument.name, _plain(getattr(self, argument.name)))
        return config


class KeepsShape(Layer):
    """A layer whose output has the shape of its first input."""

    def compute_output_shape(self, x_shape, *other_shapes, **named_shapes):
        return x_shape


def _plain(value):
    """Return an argument's value as a config stores it."""
    if isinstance(value, Part):
        return description(value)
    if isinstance(value, keras.initializers.Initializer):
        return keras.initializers.serialize(value)
    return keras.activations.serialize(value) if callable(value) else value


class Part(Layer):
    """A prototype that is passed to a layer, which makes one `like` it."""


def like(prototype: Part | dict, base: type[Part], dtype: keras.DTypePolicy, name: str) -> Part:
    """Make a part of a subclass of `base`, by the arguments of a prototype or a `description`."""
    kind = type(prototype)
    if isinstance(prototype, dict):
        kind = keras.saving.get_registered_object(prototype["class_name"])
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise ValueError(
            f"`{name}` must be an object of a subclass of {base.__name__} in keras_transformer."
            "layers, or of one of your own. Register yours with Keras, so that models load: see "
            f"register_keras_serializable. Received: {prototype!r}."
        )
    config = prototype["config"] if isinstance(prototype, dict) else prototype.get_config()
    # `from_config` would turn a policy of our own into its name.
    return kind(**{**config, "dtype": dtype, "name": name})


def description(part: Part) -> dict[str, Any]:
    """Return the registered name of a part's class, and its config: all that `like` needs."""
    name = keras.saving.get_registered_name(type(part))
    return {"class_name": name, "config": part.get_config()}


def check_sizes(least: int = 1, **sizes: Any) -> None:
    """Refuse arguments, passed by name, that are not integers (NumPy's are) of at least `least`."""
    for name, size in sizes.items():
        if not isinstance(size, numbers.Integral) or size < least:
            raise ValueError(
                f"`{name}` must be an integer, at least {least}. Received: {name}={size!r}."
            )


def check_even(name: str, size: int, reason: str) -> None:
    """Refuse an odd size of the argument `name`."""
    if size % 2:
        raise ValueError(
            f"`{name}` must be even, because {reason}. Received: {name}={size}. Try {size + 1}."
        )


def class_of(argument: str, kind: str | type, base: type | None, example: Any) -> Any:
    """Return `kind`, or what it names: a subclass of `base`, or without `base` a function."""
    choice = keras.saving.get_registered_object(kind) if isinstance(kind, str) else kind
    is_class = isinstance(choice, type) and issubclass(choice, base or object)
    if not (is_class if base else callable(choice)):
        expected = f"subclass of {base.__name__}" if base else "function"
        raise ValueError(
            f"`{argument}` must be a {expected}, or the name it is registered under. Received: "
            f"{argument}={kind!r}. Try {argument}={example.__name__}."
        )
    return choice
