"""What the flags say of the text to learn from."""

import os
from collections.abc import Mapping

from pipelines import corpora
from pipelines.corpora import CORPORA, Corpus, check_languages
from pipelines.corpora.mixture import members
from pipelines.corpora.options import FILES, PREFIXES
from pipelines.options import settings
from pipelines.vocabularies.protected_spans import ProtectedSpans

LANGUAGES = {"source_language": "en", "target_language": "de"}
# Of the options of all corpora: a run says them whether its corpus reads them or not.
DEFAULTS = {
    name: None if one.setting.is_unset else one.default
    for kind in CORPORA.values()
    for name, one in settings(kind).items()
}

# What each start of a run says anew.
OF_A_START = ("cache_dir", "map_dir", "strict")
SINCE_0_8 = ("markup", "source_column", "target_column")


def corpus_settings(values: Mapping) -> dict:
    """What `corpora.load` needs to load the same text again, by the values of flags."""
    said = {**DEFAULTS, **values}
    said["markup"] = _markup(said)
    has_own = CORPORA[said["corpus"]].has_own_languages
    return {
        "name": said["corpus"],
        **{name: said[name] if has_own else language(said, name) for name in LANGUAGES},
        "data_dir": _absolute(said["data_dir"]),
        "dataset": said["dataset"],
        "splits": list(said["splits"]),
        "mixture": _absolute(said["mixture"]),
        "prefixes": [said[name] for name in PREFIXES],
        "seed": said["seed"],
        "tree_leaves": said["tree_leaves"],
        # Runs of 0.7 and before say nothing of these.
        **{name: _absolute(said[name]) for name in FILES if said[name]},
        **{name: said[name] for name in SINCE_0_8 if said[name] != DEFAULTS[name]},
    }


def language(values: Mapping, name: str) -> str:
    """The language of a flag, "source_language" or "target_language", or its default."""
    return values.get(name) or LANGUAGES[name]


def folder_name(values: Mapping) -> str:
    """The corpus and its languages, as far as the flags say them."""
    asked = [language(values, name) for name in LANGUAGES]
    return "_".join([values["corpus"], *CORPORA[values["corpus"]].languages(*asked)])


def load(settings: Mapping, values: Mapping) -> Corpus:
    """Load the text of `corpus_settings`, with the flags that a run does not remember."""
    corpus = corpora.load(**settings, **{name: values.get(name) for name in OF_A_START})
    check_languages(corpus, settings)
    return corpus


def described(settings: Mapping, corpus: Corpus) -> dict:
    """What a run says of its text, as parts of its description: "corpus", arguments of
    `corpora.load`, with the languages that the corpus says; and "mixture", its members, since the
    file may change.
    """
    parts = {"corpus": {**settings, **{name: getattr(corpus, name) for name in LANGUAGES}}}
    if settings["mixture"]:
        parts["mixture"] = {"members": members(settings["mixture"])}
    return parts


def training(values: Mapping) -> dict:
    """What a run says of the flags that decide what is learned of its text, as "training"."""
    # Records have their own vocabulary, whatever the flag says.
    learned = (
        {} if values["corpus"] == "records" else {"vocabulary_size": values["vocabulary_size"]}
    )
    return {**learned, "max_length": values["max_train_length"]}


def fixed(description: Mapping) -> dict:
    """What of a run's description must not change.

    Earlier versions wrote the languages of the flags. Records and mixtures have their own, so that
    theirs are left out: their vocabulary distinguishes texts. Other targets are called as today.
    Earlier versions did not write the members of a mixture: those of today are taken; and wrote no
    --vocabulary_size, which then was the number of pieces.
    """
    if training := description.get("training"):
        pieces = description["hyperparameters"].get("vocabulary_size")
        description = {**description, "training": {"vocabulary_size": pieces, **training}}
    kept = dict(description["corpus"])
    asked = [kept.pop(name, None) for name in LANGUAGES]
    corpus = CORPORA.get(kept.get("name"))
    if corpus is None or not corpus.has_own_languages:
        languages = corpus.languages(*asked) if corpus else asked
        said = zip(LANGUAGES, languages, strict=True)
        kept |= {name: language for name, language in said if language is not None}
    mixture = kept.get("mixture")
    if "mixture" in description or not mixture or not os.path.isfile(mixture):
        return {**description, "corpus": kept}
    return {**description, "corpus": kept, "mixture": {"members": members(mixture)}}


def _markup(said):
    """What is done with markup: kept if it is protected. None: dropped."""
    spans = ProtectedSpans.of(said)
    is_kept = said["corpus"] == "home_assistant" and (spans.protect or spans.protect_pattern)
    markup = said["markup"] or ("kept" if is_kept else "dropped")
    return None if markup == "dropped" else markup


def _absolute(path):
    """The same path from any folder; an address such as gs://bucket/folder is one already."""
    return path if not path or "://" in path else os.path.abspath(os.path.expanduser(path))
