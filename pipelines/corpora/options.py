"""What every corpus is: a section of options that loads text. Its fields are its flags, what the
description of a run says of it, and what a member of a mixture may say.
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
from pipelines.options import FREE, TOLD, Options, option

# The corpora by name, in the order in which `pipelines.corpora` imports them.
CORPORA: dict[str, type["CorpusOptions"]] = {}
PREFIXES = ("train_prefix", "valid_prefix", "test_prefix")
FILES = ("data_file", "valid_file", "test_file")


class CorpusOptions(Options, abc.ABC):
    """A corpus. A subclass is registered by the name that it says."""

    name: ClassVar[str]
    # Whether it says its languages itself.
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
        """What the corpus calls its languages, by those that are asked for."""
        return source, target

    @abc.abstractmethod
    def load(self) -> Corpus:
        """Read all three splits. What cannot be used is counted, or refused by `strict`."""

    def stream(
        self, part: int = 0, parts: int = 1, dropped: Dropped | None = None
    ) -> Iterator[tuple[str, str]]:
        """Read a part of the training side, of 0 to `parts` - 1, which together give each pair
        once.

        `dropped` counts the pairs left out, as they are met; a corpus that is loaded whole counts
        those of all its splits, which `held_out` does. A corpus with weights, which the pairs alone
        would lose, is refused.
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
        """The corpus without pairs to learn from: those that `stream` reads."""
        return dataclasses.replace(self.load(), train=ParallelText([], []), weights=None)

    def require(self, name: str, what: str) -> Any:
        """An option that the corpus cannot do without."""
        value = getattr(self, name)
        if not value:
            kinds = {"mixture": "FILE", "data_file": "FILE", "data_dir": "FOLDER"}
            raise ValueError(
                f"Corpus {self.name} needs `{name}`, {what}. Received: {value!r}. Pass "
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
        """Both languages, which must differ."""
        if self.source_language == self.target_language:
            raise ValueError(
                "`source_language` and `target_language` must differ. Received: "
                f"{self.source_language!r} twice. Name two languages."
            )
        return self.source_language, self.target_language


def cache_folder() -> Path:
    """The user's folder for downloads."""
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
        resumed=TOLD,
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

    def folder(self, what: str) -> Path:
        """The folder, which must exist."""
        return existing_folder(self.require("data_dir", what))


class Files(Folder, Strictness):
    """Files of a folder, one a split. A member of a mixture may have None for one without pairs."""

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
        """Names of the training, validation and test split."""
        return tuple(getattr(self, name) for name in PREFIXES)


class Streamed(Target, Strictness):
    """A corpus that memory need not hold: its splits are read pair by pair."""

    @abc.abstractmethod
    def rows(
        self, split: int, dropped: Dropped, part: int = 0, parts: int = 1
    ) -> tuple[Iterator[tuple[int, str, str]], str]:
        """Open a part of a split: (number, source, target) of each usable pair, which are read when
        they are asked for, and what is numbered, for `ParallelText.from_rows`.
        """

    def stream(self, part=0, parts=1, dropped=None):
        if not 0 <= part < parts:
            raise ValueError(
                f"`part` must be from 0 to `parts` - 1. Received: part={part}, parts={parts}. "
                "Count parts from 0."
            )
        dropped = Dropped() if dropped is None else dropped
        dropped.strict = self.strict
        rows, *_ = self.rows(0, dropped, part, parts)
        return ((source, target) for _, source, target in rows)

    def held_out(self):
        return self.load(without_train=True)

    def load(self, without_train: bool = False) -> Corpus:
        # All splits are opened, so that a missing file is refused before any is read.
        dropped = Dropped(strict=self.strict)
        train, *others = [self.rows(split, dropped) for split in range(3)]
        first = ParallelText([], []) if without_train else ParallelText.from_rows(*train)
        texts = [first, *(ParallelText.from_rows(*split) for split in others)]
        return Corpus(self.name, *self.two_languages(), *texts, dropped=dropped)


def spread(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as a description of a run or a member of a mixture says them, by the names of
    options: "prefixes" are three.
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
