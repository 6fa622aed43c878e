"""Corpora of sentence pairs (Vaswani et al. 2017, section 5.1), chosen by name. The options of a
corpus are the fields of its class.

Example:
    corpus = load("text_files", source_language="en", target_language="de", data_dir="my_text")
    print(len(corpus.train), corpus.train.sources[0], corpus.train.targets[0])
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.corpora.home_assistant import HomeAssistant
from pipelines.corpora.intents import Intents
from pipelines.corpora.mixture import Mixture
from pipelines.corpora.one_file import Tmx, Tsv
from pipelines.corpora.options import CORPORA, PREFIXES, CorpusOptions, spread
from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.corpora.records import PreparedRecords
from pipelines.corpora.reverse import Reverse
from pipelines.corpora.spans import Spans
from pipelines.corpora.text_files import Lines, TextFiles
from pipelines.corpora.tfds import Tfds
from pipelines.corpora.treebank import Treebank
from pipelines.dropped import Dropped
from pipelines.options import Options, like, option, settings

__all__ = ["CORPORA", "Corpus", "CorpusChoice", "CorpusOptions", "HomeAssistant", "Intents"]
__all__ += ["Lines", "Mixture", "ParallelText", "PreparedRecords", "Reverse", "Spans", "TextFiles"]
__all__ += ["Tfds", "Tmx", "Treebank", "Tsv"]
__all__ += ["check_languages", "held_out", "load", "named", "stream"]


class CorpusChoice(Options):
    """Text."""

    corpus: str = option(
        "home_assistant",
        "Corpus to learn from.",
        choices=tuple(CORPORA),
        # A run has one seed, declared in its own section.
        adds={name: (like(kind, without=("seed",)),) for name, kind in CORPORA.items()},
    )


# A run's description holds these for every corpus, whether it reads them or not.
PASSED_OVER = ("target_language", "splits", "seed", "cache_dir", *PREFIXES)


def named(name: str, arguments: Mapping[str, Any]) -> CorpusOptions:
    """Return the options of a corpus, a key of `CORPORA`. Arguments that are None have defaults;
    "prefixes" names three splits at once. An impossible value, or an option of another corpus, is a
    ValueError.
    """
    if name not in CORPORA:
        raise ValueError(
            f"`corpus` must be one of {', '.join(sorted(CORPORA))}. Received: {name!r}."
        )
    own = settings(CORPORA[name])
    values = {}
    for argument, value in spread(arguments).items():
        if value is None and argument not in PREFIXES:
            continue
        values[argument] = os.fspath(value) if isinstance(value, os.PathLike) else value
        if argument not in own and argument not in PASSED_OVER and value is not False:
            readers = sorted(key for key, kind in CORPORA.items() if argument in settings(kind))
            raise ValueError(
                f"Only corpus {' or '.join(readers)} reads `{argument}`. Received: corpus={name}, "
                f"{argument}={value}. Pass another --corpus, or leave it out."
            )
    return CORPORA[name].of(values)


def load(name: str, **arguments: Any) -> Corpus:
    """Load a corpus with its three splits; arguments and errors as in `named`. Unusable text is a
    ValueError too, a file that cannot be read or downloaded an OSError.
    """
    return named(name, arguments).load()


def stream(
    name: str, *, part: int = 0, parts: int = 1, dropped: Dropped | None = None, **arguments: Any
) -> Iterator[tuple[str, str]]:
    """Read one of several parts of a corpus' training side: see `CorpusOptions.stream`."""
    return named(name, arguments).stream(part, parts, dropped)


def held_out(name: str, **arguments: Any) -> Corpus:
    """Load only the validation and test split of a corpus; `stream` reads its training side."""
    return named(name, arguments).held_out()


def check_languages(corpus: Corpus, arguments: Mapping[str, Any]) -> None:
    """Refuse languages other than those of records or a mixture; `load` ignores them."""
    if not CORPORA[corpus.name].has_own_languages:
        return
    for argument in ("source_language", "target_language"):
        language = arguments[argument]
        own = getattr(corpus, argument)
        if language not in (None, own):
            raise ValueError(
                f"`{argument}` must be that of the {corpus.name}, {own}. Received: "
                f"{language}. Pass --{argument}={own}, or leave it out."
            )
