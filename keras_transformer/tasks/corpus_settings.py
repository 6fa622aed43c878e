"""The settings of the text to learn from: flags, and what a run writes of them."""

import os
from collections.abc import Mapping

from pipelines import corpora
from pipelines.corpora import CORPORA, Corpus, check_languages
from pipelines.corpora.mixture import members
from pipelines.corpora.options import FILES, PREFIXES
from pipelines.options import settings
from pipelines.vocabularies.protected_spans import ProtectedSpans

LANGUAGES = {"source_language": "en", "target_language": "de"}
# Defaults of all corpora's options. A run has all of them, whether its corpus reads them or not.
DEFAULTS = {
    name: None if field.setting.is_unset else field.default
    for kind in CORPORA.values()
    for name, field in settings(kind).items()
}

# Flags that a run does not remember.
OF_A_START = ("cache_dir", "map_dir", "strict")
SINCE_0_8 = ("markup", "source_column", "target_column")


def corpus_settings(values: Mapping) -> dict:
    """Return the arguments of `corpora.load` that load the same text again, from flags."""
    flags = {**DEFAULTS, **values}
    flags["markup"] = _markup(flags)
    has_own = CORPORA[flags["corpus"]].has_own_languages
    return {
        "name": flags["corpus"],
        **{name: flags[name] if has_own else language(flags, name) for name in LANGUAGES},
        "data_dir": _absolute(flags["data_dir"]),
        "dataset": flags["dataset"],
        "splits": list(flags["splits"]),
        "mixture": _absolute(flags["mixture"]),
        "prefixes": [flags[name] for name in PREFIXES],
        "seed": flags["seed"],
        "tree_leaves": flags["tree_leaves"],
        # Runs of 0.7 and before have none of these.
        **{name: _absolute(flags[name]) for name in FILES if flags[name]},
        **{name: flags[name] for name in SINCE_0_8 if flags[name] != DEFAULTS[name]},
    }


def language(values: Mapping, name: str) -> str:
    """Return the value of the flag "source_language" or "target_language", or its default."""
    return values.get(name) or LANGUAGES[name]


def folder_name(values: Mapping) -> str:
    """Return the corpus and its languages as a name, as far as flags have them."""
    languages = [language(values, name) for name in LANGUAGES]
    return "_".join([values["corpus"], *CORPORA[values["corpus"]].languages(*languages)])


def load(settings: Mapping, values: Mapping) -> Corpus:
    """Load the text of `corpus_settings`; `values` has the flags that a run does not remember."""
    corpus = corpora.load(**settings, **{name: values.get(name) for name in OF_A_START})
    check_languages(corpus, settings)
    return corpus


def described(settings: Mapping, corpus: Corpus) -> dict:
    """Return the parts of a run's description that are of its text: "corpus", arguments of
    `corpora.load` with the languages of the corpus itself; and "mixture", its members, since that
    file may change.
    """
    parts = {"corpus": {**settings, **{name: getattr(corpus, name) for name in LANGUAGES}}}
    if settings["mixture"]:
        parts["mixture"] = {"members": members(settings["mixture"])}
    return parts


def training(values: Mapping) -> dict:
    """Return the part "training" of a run's description: flags on how its text is read."""
    # Records have their own vocabulary, whatever the flag says.
    sizes = {} if values["corpus"] == "records" else {"vocabulary_size": values["vocabulary_size"]}
    return {**sizes, "max_length": values["max_train_length"]}


def fixed(description: Mapping) -> dict:
    """Return the parts of a run's description that must not change, as today's version writes them.

    Earlier versions wrote the languages of the flags. They are left out for records and mixtures,
    which have their own and are told apart by their vocabulary; others get today's names. Earlier
    versions wrote neither the members of a mixture, which are read from its file, nor
    --vocabulary_size, which was the number of pieces.
    """
    if training := description.get("training"):
        pieces = description["hyperparameters"].get("vocabulary_size")
        description = {**description, "training": {"vocabulary_size": pieces, **training}}
    arguments = dict(description["corpus"])
    languages = [arguments.pop(name, None) for name in LANGUAGES]
    corpus = CORPORA.get(arguments.get("name"))
    if corpus is None or not corpus.has_own_languages:
        languages = corpus.languages(*languages) if corpus else languages
        pairs = zip(LANGUAGES, languages, strict=True)
        arguments |= {name: language for name, language in pairs if language is not None}
    mixture = arguments.get("mixture")
    if "mixture" in description or not mixture or not os.path.isfile(mixture):
        return {**description, "corpus": arguments}
    return {**description, "corpus": arguments, "mixture": {"members": members(mixture)}}


def _markup(flags):
    """Return --markup, by default "kept" if it is protected, or None if it is dropped."""
    spans = ProtectedSpans.of(flags)
    is_kept = flags["corpus"] == "home_assistant" and (spans.protect or spans.protect_pattern)
    markup = flags["markup"] or ("kept" if is_kept else "dropped")
    return None if markup == "dropped" else markup


def _absolute(path):
    """Return an absolute path; addresses such as gs://bucket/folder are left as they are."""
    return path if not path or "://" in path else os.path.abspath(os.path.expanduser(path))
