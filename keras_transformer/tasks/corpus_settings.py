"""What the flags say of the text to learn from."""

import os
from collections.abc import Callable, Mapping

from pipelines import corpora
from pipelines.corpora import OWN_LANGUAGES, Corpus, intents, spans, treebank
from pipelines.corpora.mixture import members
from pipelines.corpora.refusals import check_languages

LANGUAGES = {"source_language": "en", "target_language": "de"}
# What the targets of some corpora are called, by the source language and --target_language.
TARGETS: dict[str, Callable[[str, str], str]] = {
    "lines": lambda source, target: source,
    "spans": lambda source, target: spans.LANGUAGE,
    "treebank": lambda source, target: treebank.LANGUAGE,
    "intents": lambda source, target: intents.SLOTS if target == intents.SLOTS else intents.INTENT,
}
PREFIXES = ("train_prefix", "valid_prefix", "test_prefix")


def corpus_settings(values: Mapping) -> dict:
    """What `pipelines.corpora.load` needs to load the same text again.

    Args:
        values: of the flags of the groups "corpus" and "seed", by name.
    """
    has_own = values["corpus"] in OWN_LANGUAGES
    return {
        "name": values["corpus"],
        **{name: values[name] if has_own else language(values, name) for name in LANGUAGES},
        "data_dir": _absolute(values["data_dir"]),
        "dataset": values["dataset"],
        "splits": values["splits"],
        "mixture": _absolute(values["mixture"]),
        "prefixes": [values[name] for name in PREFIXES],
        "seed": values["seed"],
        "tree_leaves": values["tree_leaves"],
    }


def language(values: Mapping, name: str) -> str:
    """The language of a flag, "source_language" or "target_language", or its default."""
    return values[name] or LANGUAGES[name]


def folder_name(values: Mapping) -> str:
    """The corpus and its languages, as far as the flags say them."""
    own = {name: language(values, name) for name in LANGUAGES}
    return "_".join([values["corpus"], *_with_its_target(values["corpus"], own).values()])


def _with_its_target(name, settings):
    """Settings of a corpus whose target language is as the corpus calls it."""
    if name not in TARGETS:
        return settings
    target = TARGETS[name](settings["source_language"], settings["target_language"])
    return {**settings, "target_language": target}


def load(settings: Mapping, cache_dir: str | None, strict: bool) -> Corpus:
    """Load the text that was asked for.

    Args:
        settings: of `corpus_settings`.
        cache_dir: folder for downloads; None: the user's cache folder.
        strict: whether what the corpus would drop is refused.

    Raises:
        ValueError: as `corpora.load`; if records or a mixture have other languages.
    """
    corpus = corpora.load(**settings, cache_dir=cache_dir, strict=strict or None)
    check_languages(corpus, settings)
    return corpus


def described(settings: Mapping, corpus: Corpus) -> dict:
    """What a run says of its text, as parts of its description: "corpus", arguments of
    `pipelines.corpora.load`, with the languages that the corpus says; and "mixture", its members,
    since the file may change.

    Args:
        settings: of `corpus_settings`.
        corpus: that they load.
    """
    parts = {"corpus": {**settings, **{name: getattr(corpus, name) for name in LANGUAGES}}}
    if settings["mixture"]:
        parts["mixture"] = {"members": members(settings["mixture"])}
    return parts


def training(values: Mapping) -> dict:
    """What a run says of the flags that decide what is learned of its text, as the part "training"
    of its description.
    """
    # Records have their own vocabulary, whatever the flag says.
    learned = (
        {} if values["corpus"] == "records" else {"vocabulary_size": values["vocabulary_size"]}
    )
    return {**learned, "max_length": values["max_train_length"]}


def fixed(description: Mapping) -> dict:
    """What of a run's description must not change.

    Earlier versions wrote the languages of the flags. Records and mixtures have their own, so that
    theirs are left out: their vocabulary distinguishes texts. The targets of `TARGETS` are called
    as today. Earlier versions did not write the members of a mixture: those of today are taken; and
    wrote no --vocabulary_size, which then was the number of pieces.
    """
    if training := description.get("training"):
        pieces = description["hyperparameters"].get("vocabulary_size")
        description = {**description, "training": {"vocabulary_size": pieces, **training}}
    settings = _with_its_target(description["corpus"].get("name"), description["corpus"])
    left_out = LANGUAGES if settings.get("name") in OWN_LANGUAGES else ()
    kept = {name: value for name, value in settings.items() if name not in left_out}
    mixture = settings.get("mixture")
    if "mixture" in description or not mixture or not os.path.isfile(mixture):
        return {**description, "corpus": kept}
    return {**description, "corpus": kept, "mixture": {"members": members(mixture)}}


def _absolute(path):
    """The same path from any folder; an address such as gs://bucket/folder is one already."""
    return path if not path or "://" in path else os.path.abspath(os.path.expanduser(path))
