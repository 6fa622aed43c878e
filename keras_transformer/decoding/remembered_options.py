"""Options of decoding (Vaswani et al. 2017, section 6.1) as flags, and as a run remembers them."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from keras_transformer.decoding.options import BEAM_SIZE, RULES, DecodingOptions

OF_BEAM = ("beam_size", "length_penalty", "length_penalty_form", "beam_form", "coverage_penalty")
# Options that samples do not have.
OF_SEARCH = (*OF_BEAM, "blockwise")
OF_SAMPLES = ("samples", "temperature", "top_k", "top_p", "seed")
LANGUAGES = ("source_language", "target_language")
# Neither the number of hypotheses to show nor the options of samples.
REMEMBERED = (*OF_SEARCH, *RULES, *LANGUAGES)


def decoding_flags(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `DecodingOptions` that are set among the values of flags."""
    # Languages are flags of corpora too.
    fields = dataclasses.fields(DecodingOptions)
    names = [field.name for field in fields if field.name not in LANGUAGES]
    return {name: values[name] for name in names if values.get(name) is not None}


def remembered(options: DecodingOptions) -> dict[str, Any]:
    """Return the options that a run remembers: arguments of `DecodingOptions`, as JSON."""
    lists = {name: list(getattr(options, name)) for name in ("barred", "forbidden_words")}
    values = {**dataclasses.asdict(options), **lists}
    defaults = {"barred": [], "forbidden_words": [], "protect_all": True, "blockwise": False}
    return {name: values[name] for name in REMEMBERED if values[name] != defaults.get(name)}


def kept_in(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `remembered` options in a run's `model.json`; {} in one of 0.6 or earlier."""
    options = description.get("decoding") or {}
    if not options.keys() <= set(REMEMBERED):
        raise ValueError(
            f"`decoding` of model.json must hold some of {', '.join(REMEMBERED)}. Received: "
            f"{options}. Copy the file again from where the model was trained."
        )
    return options


def check_languages(options: Mapping[str, Any], labels: Collection[str], holder: Any) -> None:
    """Refuse languages for which a model, the `holder`, has no labels."""
    for name in LANGUAGES:
        language = options.get(name)
        if language is not None and language not in labels:
            has = f"{', '.join(sorted(labels))}. Name one of these."
            none = "no labels of languages. Leave it out."
            raise ValueError(f"{name}={language}: {holder} has {has if labels else none}")


def check_heads(options: DecodingOptions, has_heads: bool) -> None:
    """Refuse `blockwise` for a model without the heads that propose blocks."""
    if options.blockwise and not has_heads:
        raise ValueError(
            "`blockwise` needs the heads of a model that was trained with --block_size of 2 or "
            "more. Received: a model without. Leave it out, or train its heads by --init_from."
        )


def options_of_run(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> DecodingOptions:
    """Return the options of a run or an export: its defaults with some `options` in their place.
    Defaults that conflict with these are left out: samples have no beam, a search draws nothing,
    and greedy search has no coverage penalty. Of hypotheses no more are shown than are kept.
    """
    excluded = OF_SEARCH if options.get("samples") else ()
    if beam_size := options.get("beam_size"):
        excluded = ("blockwise", "coverage_penalty") if beam_size == 1 else ("blockwise",)
    if options.get("blockwise"):
        excluded = OF_BEAM
    if not (options.get("samples") or options.keys().isdisjoint((*OF_SEARCH, "samples"))):
        excluded = (*excluded, *OF_SAMPLES)
    usable = {name: value for name, value in defaults.items() if name not in excluded}
    shown = usable.pop("num_hypotheses", 1)
    decoding = DecodingOptions(**{**usable, **options})
    if "num_hypotheses" in options:
        return decoding
    most = decoding.samples or decoding.beam_size or BEAM_SIZE
    return dataclasses.replace(decoding, num_hypotheses=min(shown, most))
