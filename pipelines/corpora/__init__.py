"""Where the sentence pairs come from (Vaswani et al. 2017, section 5.1): one corpus a file, chosen
by name. What a corpus reads are the fields of its class.

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

__all__ = [
    "CORPORA",
    "Corpus",
    "CorpusChoice",
    "CorpusOptions",
    "HomeAssistant",
    "Intents",
    "Lines",
    "Mixture",
    "ParallelText",
    "PreparedRecords",
    "Reverse",
    "Spans",
    "TextFiles",
    "Tfds",
    "Tmx",
    "Treebank",
    "Tsv",
    "check_languages",
    "held_out",
    "load",
    "named",
    "stream",
]


class CorpusChoice(Options):
    """Text."""

    corpus: str = option(
        "home_assistant",
        "Corpus to learn from.",
        choices=tuple(CORPORA),
        # The seed is that of the run.
        adds={name: (like(kind, without=("seed",)),) for name, kind in CORPORA.items()},
    )


# A run's description says these of every corpus, whether it reads them or not.
PASSED_OVER = ("target_language", "splits", "seed", "cache_dir", *PREFIXES)


def named(name: str, arguments: Mapping[str, Any]) -> CorpusOptions:
    """The options of a corpus, a key of `CORPORA`, by name, with "prefixes" for the names of three
    splits; None for what is not said. A ValueError refuses an option that cannot be, or is another
    corpus'.
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
            readers = sorted(one for one, kind in CORPORA.items() if argument in settings(kind))
            raise ValueError(
                f"Only corpus {' or '.join(readers)} reads `{argument}`. Received: corpus={name}, "
                f"{argument}={value}. Pass another --corpus, or leave it out."
            )
    return CORPORA[name].of(values)


def load(name: str, **arguments: Any) -> Corpus:
    """Load a corpus with its three splits; arguments and errors as of `named`. Text that cannot be
    used is a ValueError too, a file that cannot be read or downloaded an OSError.
    """
    return named(name, arguments).load()


def stream(
    name: str, *, part: int = 0, parts: int = 1, dropped: Dropped | None = None, **arguments: Any
) -> Iterator[tuple[str, str]]:
    """Read one of several parts of a corpus' training side: `CorpusOptions.stream`."""
    return named(name, arguments).stream(part, parts, dropped)


def held_out(name: str, **arguments: Any) -> Corpus:
    """Load the validation and the test split of a corpus whose training side `stream` reads."""
    return named(name, arguments).held_out()


def check_languages(corpus: Corpus, arguments: Mapping[str, Any]) -> None:
    """Refuse languages that are not those of records or a mixture, which `load` passes over."""
    if not CORPORA[corpus.name].has_own_languages:
        return
    for argument in ("source_language", "target_language"):
        asked = arguments[argument]
        own = getattr(corpus, argument)
        if asked not in (None, own):
            raise ValueError(
                f"`{argument}` must be that of the {corpus.name}, {own}. Received: "
                f"{asked}. Pass --{argument}={own}, or leave it out."
            )
