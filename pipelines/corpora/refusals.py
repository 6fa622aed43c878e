"""Arguments of `corpora.load` that its corpus cannot use (Vaswani et al. 2017, section 5.1)."""

from collections.abc import Mapping, Sequence

from pipelines.corpora import tfds
from pipelines.corpora.parallel_text import Corpus

# Corpora that say their languages themselves.
OWN_LANGUAGES = ("records", "mixture")
# Arguments that only some corpora read.
READERS = {
    "data_dir": ("text_files", "lines", "spans", "treebank", "records", "tfds"),
    "dataset": ("tfds",),
    "mixture": ("mixture",),
    "tree_leaves": ("treebank", "mixture"),
    "strict": ("text_files", "lines", "spans", "treebank", "tfds", "mixture"),
}
# The same of arguments with defaults, of which `corpora.load` cannot tell whether they were given.
READERS_OF_DEFAULTS = {
    "prefixes": ("text_files", "lines", "spans", "treebank"),
    "splits": ("tfds",),
    "seed": ("spans", "reverse"),
}
# Members of a mixture that may have null for a split without pairs.
OF_EMPTY_SPLITS = ("text_files", "treebank")


def check_settings(name: str, settings: Mapping[str, object], names: Sequence[str]) -> None:
    """Refuse what can be told before the text is read.

    Args:
        name: of the corpus.
        settings: keywords of `corpora.load`, those that were given.
        names: of all corpora.

    Raises:
        ValueError: naming the argument.
    """
    if name not in names:
        raise ValueError(f"`corpus` must be one of {', '.join(names)}. Received: {name!r}.")
    for argument, readers in READERS.items():
        if settings.get(argument) is not None and name not in readers:
            raise ValueError(
                f"Only corpus {' or '.join(readers)} reads `{argument}`. Received: "
                f"corpus={name}, {argument}={settings[argument]}. "
                f"Pass --corpus={readers[0]}, or leave it out."
            )
    if name == "tfds" and "splits" in settings:
        tfds.check_splits(settings["splits"])


def check_member(name: str, member: Mapping[str, object]) -> None:
    """Refuse keys that the corpus of a member of a mixture does not read.

    Args:
        name: of the member, for the error.
        member: its keys and values, "corpus" among them.

    Raises:
        ValueError: naming the member and the key.
    """
    for key, readers in READERS_OF_DEFAULTS.items():
        if key in member and member["corpus"] not in readers:
            raise ValueError(
                f"{name}: only corpus {' or '.join(readers)} reads `{key}`. Received: "
                f"corpus={member['corpus']}, {key}={member[key]}. Remove it."
            )
    if None in member.get("prefixes", ()) and member["corpus"] not in OF_EMPTY_SPLITS:
        raise ValueError(
            f"{name}: only corpus {' or '.join(OF_EMPTY_SPLITS)} may have null in `prefixes`. "
            f"Received: corpus={member['corpus']}. Name its files."
        )


def check_languages(corpus: Corpus, settings: Mapping[str, object]) -> None:
    """Refuse languages that somebody asks for and that are not those of records or a mixture, which
    `corpora.load` passes over.

    Args:
        corpus: as it was loaded.
        settings: keywords of `corpora.load`; a language may be None.

    Raises:
        ValueError: naming the argument and the corpus' language.
    """
    for argument in ("source_language", "target_language"):
        asked = settings[argument]
        if asked is None or corpus.name not in OWN_LANGUAGES:
            continue
        own = getattr(corpus, argument)
        if asked != own:
            raise ValueError(
                f"`{argument}` must be that of the {corpus.name}, {own}. Received: "
                f"{asked}. Pass --{argument}={own}, or leave it out."
            )
