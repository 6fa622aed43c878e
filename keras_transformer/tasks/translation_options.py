"""What the flags of translation say of its search, its objective and its pieces."""

import dataclasses
from collections.abc import Mapping

from keras_transformer.decoding import DecodingOptions
from keras_transformer.training.objective import ScheduledSampling
from pipelines.bpe_dropout import BpeDropout
from pipelines.vocabulary import Vocabulary


def decoding_options(values: Mapping) -> DecodingOptions:
    """What the flags of the groups "search" and "decoding" say, by name."""
    names = [field.name for field in dataclasses.fields(DecodingOptions)]
    given = {name: values[name] for name in names if values.get(name) is not None}
    if not given.get("samples"):
        # Training draws no translations: its seed is not theirs.
        given.pop("seed", None)
    return DecodingOptions(**given)


def scheduled_sampling(values: Mapping) -> ScheduledSampling | None:
    """The objective that --scheduled_sampling asks for; None: it asks for none.

    Raises:
        ValueError: if --r_drop is given too.
    """
    probability = values["scheduled_sampling"]
    if not probability:
        return None
    if values["r_drop"]:
        raise ValueError(
            "--r_drop and --scheduled_sampling exclude each other: both need two passes of their "
            f"own. Received: {values['r_drop']} and {probability}. Leave one out."
        )
    return ScheduledSampling(probability, values["scheduled_sampling_steps"])


def segmentation(values: Mapping, vocabulary: Vocabulary) -> BpeDropout | None:
    """How --bpe_dropout cuts the sentences that are trained on; None: as the vocabulary does.

    Raises:
        ValueError: if shapes are to be static, or the vocabulary is not of byte pairs.
    """
    probability = values["bpe_dropout"]
    if not probability:
        return None
    if values["static_shapes"]:
        raise ValueError(
            "--bpe_dropout gives sentences of any length, and --static_shapes wants few. "
            f"Received: bpe_dropout={probability}. Leave one out."
        )
    return BpeDropout(vocabulary, probability, values["seed"])
