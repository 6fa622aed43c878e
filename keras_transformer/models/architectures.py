"""What can translate, by name: the Transformer, and what table 2 of its paper compares it with
(Vaswani et al. 2017).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras

from keras_transformer.models.convolutional_translator import (
    ConvolutionalHyperparameters,
    ConvolutionalTranslator,
)
from keras_transformer.models.encoder_decoder import EncoderDecoder
from keras_transformer.models.hyperparameter_checks import from_dictionary
from keras_transformer.models.hyperparameters import Hyperparameters
from keras_transformer.models.recurrent_translator import (
    RecurrentHyperparameters,
    RecurrentTranslator,
)
from keras_transformer.models.transformer import Transformer

# The hyperparameters of any of them.
AnyHyperparameters = Hyperparameters | RecurrentHyperparameters | ConvolutionalHyperparameters


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A kind of model and what sizes it.

    Attributes:
        hyperparameters: a dataclass, whose field `architecture` is this one's name.
        model: made from such hyperparameters and a dtype policy.
    """

    hyperparameters: type
    model: type[EncoderDecoder]


ARCHITECTURES = {
    "transformer": Architecture(Hyperparameters, Transformer),
    "recurrent": Architecture(RecurrentHyperparameters, RecurrentTranslator),
    "convolutional": Architecture(ConvolutionalHyperparameters, ConvolutionalTranslator),
}


def chosen(values: Mapping[str, Any]) -> AnyHyperparameters:
    """The hyperparameters that flags say.

    Args:
        values: of all flags of the model and of `vocabulary_size`, by name.

    Raises:
        ValueError: if there is no such architecture, or a value makes no sense.
    """
    kind = _of_name(values["architecture"]).hyperparameters
    return kind(**{field.name: values[field.name] for field in dataclasses.fields(kind)})


def described(description: Mapping[str, Any]) -> AnyHyperparameters:
    """The hyperparameters of a dictionary that their `as_dict` gave.

    One that names no architecture is a Transformer's: before 0.7 there was no other.

    Raises:
        ValueError: if there is no such architecture or hyperparameter, or a value makes no sense.
    """
    name = description.get("architecture", "transformer")
    return from_dictionary(_of_name(name).hyperparameters, description)


def model_of(
    hyperparameters: AnyHyperparameters, dtype: str | keras.DTypePolicy | None = None
) -> EncoderDecoder:
    """A new model.

    Args:
        hyperparameters: of any architecture.
        dtype: a Keras dtype policy; the global one by default.
    """
    return ARCHITECTURES[hyperparameters.architecture].model(hyperparameters, dtype=dtype)


def _of_name(name):
    if name not in ARCHITECTURES:
        raise ValueError(
            f"`architecture` must be {' or '.join(ARCHITECTURES)}. Received: architecture={name!r}."
        )
    return ARCHITECTURES[name]
