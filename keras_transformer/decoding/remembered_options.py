"""What a run remembers of how it decodes (Vaswani et al. 2017, section 6.1): the search and the
lengths that it was trained with, so that commands that take the run search as its export does.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_transformer.decoding.options import DecodingOptions

# What samples do without.
OF_SEARCH = ("beam_size", "length_penalty", "coverage_penalty")
# Neither how many hypotheses are shown nor how samples are drawn.
REMEMBERED = (
    *OF_SEARCH,
    "max_length",
    "min_length",
    "no_repeat_ngram_size",
    "repetition_penalty",
    "constrained",
)


def remembered(options: DecodingOptions) -> dict[str, Any]:
    """What a run keeps of its options: arguments of `DecodingOptions`, as JSON."""
    values = dataclasses.asdict(options)
    return {name: values[name] for name in REMEMBERED if values[name] is not None}


def kept_in(description: Mapping[str, Any]) -> dict[str, Any]:
    """What a run's `model.json` has of `remembered`; {} in one of 0.6 or earlier.

    Raises:
        ValueError: if it has something else there.
    """
    kept = description.get("decoding", {})
    if not isinstance(kept, dict) or not kept.keys() <= set(REMEMBERED):
        raise ValueError(
            f"`decoding` of model.json must hold some of {', '.join(REMEMBERED)}. Received: "
            f"{kept}. Copy the file again from where the model was trained."
        )
    return kept


def options_of_run(given: Mapping[str, Any], kept: Mapping[str, Any]) -> DecodingOptions:
    """The options of a run: those that are given, and for the rest those that it kept. A kept one
    that something given excludes is left out: samples are not searched for, and greedy search has
    no coverage penalty.

    Args:
        given: arguments of `DecodingOptions`.
        kept: likewise, what `remembered` returned when the run was trained.

    Raises:
        ValueError: as `DecodingOptions` does.
    """
    excluded = OF_SEARCH if given.get("samples") else ()
    if given.get("beam_size") == 1:
        excluded = ("coverage_penalty",)
    usable = {name: value for name, value in kept.items() if name not in excluded}
    return DecodingOptions(**{**usable, **given})
