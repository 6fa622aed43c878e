"""The base classes of corpora: sections of options that load text. Their fields are the flags, and
the entries of a run's description and of a mixture's members.
"""

import abc
import dataclasses
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pipelines.corpora.parallel_text import Corpus, ParallelText
from pipelines.dropped import Dropped
from pipelines.line_files import existing_folder
from pipelines.options import FREE, REPORTED, Options, option

# The corpora by name, in the order in which `pipelines.corpora` imports them.
CORPORA: dict[str, type["CorpusOptions"]] = {}
PREFIXES = ("train_prefix", "valid_prefix", "test_prefix")
FILES = ("data_file", "valid_file", "test_file")


class CorpusOptions(Options, abc.ABC):
    """A corpus. A subclass with a name is registered in `CORPORA`."""

    name: ClassVar[str]
    # Whether the data, not the options, decide the languages.
    has_own_languages: ClassVar[bool] = False

    source_language: str | None = option(
        "en",
        "Language of the source: a code such as en, another ending of text_files, or what a model "
        "of many languages calls it, such as eng_Latn. Default: en; records, mixtures and such "
        "models have their own.",
        is_unset=True,
    )

    def __init_subclass__(cls, name: str | None = None):
        super().__init_subclass__()
        if name:
            cls.name = name
            CORPORA[name] = cls

    @classmethod
    def languages(cls, source: str, target: str) -> tuple[str, str]:
        """Return the names of the corpus' languages, from those of the options."""
        return source, target

    @abc.abstractmethod
    def load(self) -> Corpus:
        """Read all three splits. Unusable text is counted, or refused by `strict`."""

    def stream(
        self, part: int = 0, parts: int = 1, dropped: Dropped | None = None
    ) -> Iterator[tuple[str, str]]:
        """Read part 0 to `parts` - 1 of the training side; all parts together have each pair once.

        `dropped` counts the pairs left out as they are read. This default, which loads the whole
        corpus, leaves it alone: `held_out` has counts of all splits. A corpus with weights, which
        the pairs alone would lose, is refused.
        """
        corpus = self.load()
        if corpus.weights is not None:
            raise ValueError(
                f"Corpus {self.name} has weights other than 1, and pairs read alone would lose "
                "them. Train on it without preparing it."
            )
        train = corpus.train
        return zip(train.sources[part::parts], train.targets[part::parts], strict=True)

    def held_out(self) -> Corpus:
        """Load the corpus without its training pairs, which `stream` reads."""
        return dataclasses.replace(self.load(), train=ParallelText([], []), weights=None)

    def require(self, name: str, meaning: str) -> Any:
        """Return an option that the corpus needs, or raise a ValueError if it is not set."""
        value = getattr(self, name)
        if not value:
            kinds = {"mixture": "FILE", "data_file": "FILE", "data_dir": "FOLDER"}
            raise ValueError(
                f"Corpus {self.name} needs `{name}`, {meaning}. Received: {value!r}. Pass "
                f"--{name}={kinds.get(name, 'NAME')}."
            )
        return value


class Target(CorpusOptions):
    """A target language."""

    target_language: str | None = option(
        "de",
        "Language to translate into: a code such as de, another ending of text_files, or what a "
        "model of many languages calls it, such as deu_Latn. For labels and tags: intent or slots "
        "for --corpus=intents, topic for train.topic. Default: de; records, mixtures and such "
        "models have their own.",
        is_unset=True,
    )

    def two_languages(self) -> tuple[str, str]:
        """Return both languages, which must differ."""
        if self.source_language == self.target_language:
            raise ValueError(
                "`source_language` and `target_language` must differ. Received: "
                f"{self.source_language!r} twice. Name two languages."
            )
        return self.source_language, self.target_language


def cache_folder() -> Path:
    """Return the user's folder for downloads."""
    folder = os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    if folder.startswith("~"):
        raise OSError("no home folder is known for downloads. Set HOME, or XDG_CACHE_HOME.")
    return Path(folder) / "keras_transformer"


class Downloaded(CorpusOptions):
    """A folder for downloads."""

    cache_dir: str | None = option(
        None,
        "Folder for downloads. Default: the user's cache folder, which the variable "
        "XDG_CACHE_HOME moves. evaluate has no such flag: it looks in the user's cache folder.",
        path="folder",
        resumed=FREE,
    )


class Strictness(Options):
    """Damaged examples."""

    strict: bool = option(
        False,
        "Refuse text, trees, tagged words and pictures that are damaged or empty. Default: they "
        "are left out, and counted with the place of the first.",
        resumed=REPORTED,
    )


class Seeded(CorpusOptions):
    """A random seed."""

    seed: int = option(
        0,
        "Random seed for weights, dropout, batch order, sampling and synthetic text. Members of "
        "a mixture have seeds of their own.",
        at_least=0,
    )


class Folder(CorpusOptions):
    """A folder."""

    data_dir: str | None = option(
        None,
        "Folder of the corpus. text_files: train.en[.gz], train.de[.gz], valid.*, test.*. lines "
        "and spans: train.en[.gz], valid.*, test.*. treebank: train.trees[.gz], valid.*, "
        "test.*. records: what prepare wrote. tfds: its data folder.",
        path=True,
    )

    def folder(self, meaning: str) -> Path:
        """Return the folder, which must exist; `meaning` describes it in the error."""
        return existing_folder(self.require("data_dir", meaning))


class Files(Folder, Strictness):
    """Files of a folder, one a split. In a mixture's member a prefix of None is an empty split."""

    train_prefix: str | None = option("train", "Name of the training files without the language.")
    valid_prefix: str | None = option("valid", "Name of the validation files without the language.")
    test_prefix: str | None = option("test", "Name of the test files without the language.")

    def __post_init__(self):
        super().__post_init__()
        if "" in self.prefixes:
            raise ValueError(
                "`prefixes` must name three splits: training, validation, test. Received: an empty "
                "name. Name them by --train_prefix, --valid_prefix and --test_prefix; a member of "
                "a mixture may have null for no pairs."
            )
        if self.train_prefix and self.train_prefix in self.prefixes[1:]:
            raise ValueError(
                "`train_prefix` must be another than those to validate and to test on. Received: "
                f"{self.train_prefix!r} twice. Name other files."
            )

    @property
    def prefixes(self) -> tuple[str | None, ...]:
        """Return the prefixes of the training, validation and test split."""
        return tuple(getattr(self, name) for name in PREFIXES)


class Streamed(Target, Strictness):
    """A corpus read pair by pair, so that it need not fit into memory."""

    @abc.abstractmethod
    def rows(
        self, split: int, dropped: Dropped, part: int = 0, parts: int = 1
    ) -> tuple[Iterator[tuple[int, str, str]], str]:
        """Open a part of a split. Return the arguments of `ParallelText.from_rows`: a lazy iterator
        of (number, source, target) of the usable pairs, its name, and what the numbers count.
        """

    def stream(self, part=0, parts=1, dropped=None):
        if not 0 <= part < parts:
            raise ValueError(
                f"`part` must be from 0 to `parts` - 1. Received: {part=}, {parts=}. Count from 0."
            )
        dropped = Dropped() if dropped is None else dropped
        dropped.strict = self.strict
        rows, *_ = self.rows(0, dropped, part, parts)
        return ((source, target) for _, source, target in rows)

    def held_out(self):
        return self.load(without_train=True)

    def load(self, without_train: bool = False) -> Corpus:
        # All splits are opened before any is read, so that a missing file is refused at once.
        dropped = Dropped(strict=self.strict)
        train, valid, test = [self.rows(split, dropped) for split in range(3)]
        first = ParallelText([], []) if without_train else ParallelText.from_rows(*train)
        texts = [first, ParallelText.from_rows(*valid), ParallelText.from_rows(*test)]
        return Corpus(self.name, *self.two_languages(), *texts, dropped=dropped)


def spread(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run's description or a mixture's member by the names of options:
    "prefixes" becomes three of them.
    """
    prefixes = settings.get("prefixes")
    rest = {name: value for name, value in settings.items() if name != "prefixes"}
    if prefixes is None:
        return rest
    if not isinstance(prefixes, list | tuple) or len(prefixes) != len(PREFIXES):
        raise ValueError(
            "`prefixes` must name three splits: training, validation, test, each a string, or null "
            f"for no pairs. Received: {prefixes!r}. Try train,valid,test."
        )
    return {**rest, **dict(zip(PREFIXES, prefixes, strict=True))}
