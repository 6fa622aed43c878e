"""What the flags of translation say of its search."""

import dataclasses
from collections.abc import Mapping

from keras_transformer.decoding import DecodingOptions


def decoding_options(values: Mapping) -> DecodingOptions:
    """What the flags of the groups "search" and "decoding" say, by name."""
    names = [field.name for field in dataclasses.fields(DecodingOptions)]
    given = {name: values[name] for name in names if values.get(name) is not None}
    if not given.get("samples"):
        # Training draws no translations: its seed is not theirs.
        given.pop("seed", None)
    return DecodingOptions(**given)
