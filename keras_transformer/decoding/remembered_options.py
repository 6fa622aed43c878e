"""Options of decoding (Vaswani et al. 2017, section 6.1): of flags, and those that a run keeps."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from keras_transformer.decoding.options import RULES, DecodingOptions

# What samples do without.
OF_BEAM = ("beam_size", "length_penalty", "length_penalty_form", "beam_form", "coverage_penalty")
OF_SEARCH = (*OF_BEAM, "blockwise")
# Neither how many hypotheses are shown nor how samples are drawn.
LANGUAGES = ("source_language", "target_language")
REMEMBERED = (*OF_SEARCH, *RULES, *LANGUAGES)


def decoding_flags(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `DecodingOptions` that the values of flags give."""
    # Languages are flags of corpora too.
    names = [one.name for one in dataclasses.fields(DecodingOptions) if one.name not in LANGUAGES]
    return {name: values[name] for name in names if values.get(name) is not None}


def remembered(options: DecodingOptions) -> dict[str, Any]:
    """What a run keeps of its options: arguments of `DecodingOptions`, as JSON."""
    lists = {name: list(getattr(options, name)) for name in ("barred", "forbidden_words")}
    values = {**dataclasses.asdict(options), **lists}
    usual = {"barred": [], "forbidden_words": [], "protect_all": True, "blockwise": False}
    return {name: values[name] for name in REMEMBERED if values[name] != usual.get(name)}


def kept_in(description: Mapping[str, Any]) -> dict[str, Any]:
    """What a run's `model.json` has of `remembered`; {} in one of 0.6 or earlier."""
    kept = description.get("decoding", {})
    if not isinstance(kept, dict) or not kept.keys() <= set(REMEMBERED):
        raise ValueError(
            f"`decoding` of model.json must hold some of {', '.join(REMEMBERED)}. Received: "
            f"{kept}. Copy the file again from where the model was trained."
        )
    return kept


def check_languages(options: Mapping[str, Any], known: Collection[str], holder: Any) -> None:
    """Refuse languages that a model, its `holder`, has no labels of."""
    for name in LANGUAGES:
        language = options.get(name)
        if language is not None and language not in known:
            has = f"{', '.join(sorted(known))}. Name one of these."
            none = "no labels of languages. Leave it out."
            raise ValueError(f"{name}={language}: {holder} has {has if known else none}")


def check_heads(options: DecodingOptions, has_heads: bool) -> None:
    """Refuse blocks of a model that has no heads to propose them."""
    if options.blockwise and not has_heads:
        raise ValueError(
            "`blockwise` needs the heads of a model that was trained with --block_size of 2 or "
            "more. Received: a model without. Leave it out, or train its heads by --init_from."
        )


def options_of_run(given: Mapping[str, Any], kept: Mapping[str, Any]) -> DecodingOptions:
    """The options of a run: those that are given, and for the rest those that it kept. A kept one
    that something given excludes is left out: samples are not searched for, and greedy search has
    no coverage penalty.
    """
    excluded = OF_SEARCH if given.get("samples") else ()
    if given.get("beam_size"):
        excluded = ("blockwise", "coverage_penalty") if given["beam_size"] == 1 else ("blockwise",)
    if given.get("blockwise"):
        excluded = OF_BEAM
    usable = {name: value for name, value in kept.items() if name not in excluded}
    return DecodingOptions(**{**usable, **given})
