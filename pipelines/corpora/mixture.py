"""Several corpora as one, weighted and tagged, for models of many languages or domains (Johnson et
al. 2017: a tag asks for the language).

    {"corpora": [
        {"corpus": "text_files", "source_language": "en", "target_language": "de",
         "data_dir": "news", "weight": 2.0, "tag": "<2de>"},
        {"corpus": "text_files", "source_language": "en", "target_language": "fr",
         "data_dir": "talks", "tag": "<2fr>"}
    ]}

A member has the options of its corpus; "weight": how often an epoch has each of its pairs (default
1.0; 0.5: once in two epochs; 0: only its other splits are used); and "tag", which is put before
each of its sources with a space. Relative paths are relative to the file's folder.
"""

import dataclasses
import itertools
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.corpora.options import (
    CORPORA,
    FILES,
    PREFIXES,
    CorpusOptions,
    Downloaded,
    Strictness,
    Target,
    spread,
)
from pipelines.corpora.parallel_text import Corpus, Origin, ParallelText
from pipelines.corpora.treebank import TreeLeaves
from pipelines.dropped import Dropped
from pipelines.json_files import read_object
from pipelines.options import again, option, settings

TAG = re.compile(r"<[A-Za-z0-9_-]+>")
NEEDED = ("corpus", "source_language", "target_language")
PLACES = ("data_dir", "cache_dir", *FILES)
# Options that the mixture sets for all members.
SHARED = ("strict", "tree_leaves")
MOST = sys.float_info.max
PURPOSES = {"train": "train on", "valid": "validate on", "test": "test on"}


@dataclasses.dataclass(frozen=True)
class Member:
    """A corpus of a mixture, its JSON object in the file, and its place there for errors."""

    place: str
    entry: Mapping[str, Any]
    corpus: CorpusOptions

    @property
    def tag(self) -> str | None:
        return self.entry.get("tag")

    @property
    def weight(self) -> float:
        return float(self.entry.get("weight", 1))

    def load(self) -> Corpus:
        try:
            return self.corpus.load() if self.weight > 0 else self.corpus.held_out()
        except (ValueError, OSError) as error:
            kind = ValueError if isinstance(error, ValueError) else OSError
            raise kind(f"{self.place}: {error}") from error


class Mixture(TreeLeaves, Downloaded, Strictness, name="mixture"):
    """A mixture of corpora. The languages of its members are joined by "+"; the validation and test
    splits are tagged too.
    """

    has_own_languages = True

    source_language: str | None = again(CorpusOptions, "source_language", None)
    target_language: str | None = again(Target, "target_language", None)
    tree_leaves: str | None = again(TreeLeaves, "tree_leaves", None)
    mixture: str | None = option(
        None,
        "JSON file that lists corpora with weights and tags, for --corpus=mixture. See "
        "docs/big_corpora.md.",
        path=True,
    )

    def members(self) -> list[Member]:
        """Return the corpora of the file, with the options of the mixture."""
        path = self.require("mixture", "the JSON file that lists its members")
        own = {"cache_dir": self.cache_dir, "tree_leaves": self.tree_leaves, "strict": self.strict}
        shared = {name: value for name, value in own.items() if value is not None}
        return [
            Member(
                f"{path}, member {number}",
                entry,
                CORPORA[entry["corpus"]].of({**shared, **spread(entry)}),
            )
            for number, entry in enumerate(members(path), 1)
        ]

    def load(self):
        all_members = self.members()
        corpora = [member.load() for member in all_members]
        tags = [member.tag for member in all_members]
        # Symbols of trees and sentinels of spans.
        own = {tag: corpus.name for corpus in corpora for tag in corpus.tags}
        for tag in own.keys() & tags:
            raise ValueError(
                f"{self.mixture}: the tag {tag} is one of corpus {own[tag]}. Name another."
            )
        sizes = [len(corpus.train) for corpus in corpora]
        weights = np.repeat([member.weight for member in all_members], sizes)
        splits = {
            split: _concatenated([getattr(corpus, split) for corpus in corpora], tags, self.mixture)
            for split in PURPOSES
        }
        if empty := [split for split, text in splits.items() if not len(text)]:
            raise ValueError(
                f"{self.mixture} must have a member with a split to {PURPOSES[empty[0]]}. "
                f"Received: none. Name its {empty[0]} prefix or split."
            )
        return Corpus(
            "mixture",
            "+".join(dict.fromkeys(corpus.source_language for corpus in corpora)),
            "+".join(dict.fromkeys(corpus.target_language for corpus in corpora)),
            **splits,
            dropped=Dropped.joined(corpus.dropped for corpus in corpora),
            tags=tuple(dict.fromkeys([*filter(None, tags), *own])),
            weights=None if np.all(weights == 1) else weights,
        )


def members(path: str | os.PathLike) -> list[dict]:
    """Read the entries of a mixture's file, with paths relative to its folder made whole."""
    file = Path(os.path.expanduser(path))
    content = read_object(file, "Correct the file.")
    listed = content.get("corpora")
    if not isinstance(listed, list) or not listed or len(content) != 1:
        raise ValueError(
            f'{path} must be {{"corpora": [...]}}, with one member or more. Received: '
            f"{str(content)[:200]}. List the members."
        )
    for number, member in enumerate(listed, start=1):
        try:
            _check(member)
        except ValueError as error:
            raise ValueError(f"{path}, member {number}: {error}") from error
        for key in PLACES:
            if "://" not in member.get(key, "://"):  # gs:// is no path.
                member[key] = str(file.parent / os.path.expanduser(member[key]))
    return listed


def _check(member) -> None:
    if not isinstance(member, dict):
        raise ValueError(
            f'must be {{"corpus": ..., ...}}. Received: {member!r}. See docs/big_corpora.md.'
        )
    of_members = {name: kind for name, kind in CORPORA.items() if not kind.has_own_languages}
    readers = {name: _keys(kind) for name, kind in of_members.items()}
    keys = sorted({*NEEDED, "weight", "tag"}.union(*readers.values()))
    if unknown := [key for key in member if key not in keys]:
        raise ValueError(
            f"`{unknown[0]}` is no key of a member. Known: {', '.join(keys)}. Correct or remove it."
        )
    if missing := [key for key in NEEDED if key not in member]:
        raise ValueError(
            f"`{missing[0]}` is missing. Received: {', '.join(member) or 'no key'}. Add it."
        )
    name = member["corpus"]
    if not isinstance(name, str) or name not in of_members:
        raise ValueError(
            f"`corpus` must be one of {', '.join(of_members)}: text, and no mixture. Received: "
            f"{name!r}. List the corpora that it was made of."
        )
    for key, value in member.items():
        if key not in (*NEEDED, "weight", "tag") and key not in readers[name]:
            names = " or ".join(corpus for corpus in of_members if key in readers[corpus])
            raise ValueError(
                f"only corpus {names} reads `{key}`. Received: corpus={name}, {key}={value}. "
                "Remove it."
            )
        if value is None or value == "":
            raise ValueError(f"`{key}` must be set. Received: {value!r}. Correct it.")
    weight = member.get("weight", 1)
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    # The order of an epoch cannot find pairs that come less than once in a million epochs.
    if not is_number or not (weight == 0 or 1e-6 <= weight <= MOST):
        raise ValueError(
            f"`weight` must be 0 or a number of at least 1e-6. Received: {weight!r}. Correct it."
        )
    tag = member.get("tag", "<tag>")
    if not isinstance(tag, str) or not TAG.fullmatch(tag):
        raise ValueError(
            "`tag` must be a string such as <2de>: letters, digits, _ and - between < and >. "
            f"Received: {tag!r}. Correct it."
        )
    CORPORA[name].of(spread(member))


def member_of(settings: Mapping[str, Any]) -> dict:
    """Return the entry of a mixture's file for a corpus, by the arguments of `corpora.load`."""
    name = settings["name"]
    keys = {*NEEDED, *_keys(CORPORA[name])}
    member = {"corpus": name}
    member |= {key: value for key, value in settings.items() if key in keys and value}
    _check(member)
    return member


def _keys(kind):
    """Return the keys of a member with this kind of corpus, except those that every member has."""
    names = set(settings(kind)) - set(SHARED)
    return names if names.isdisjoint(PREFIXES) else names - set(PREFIXES) | {"prefixes"}


def _concatenated(texts: Sequence[ParallelText], tags: Sequence[str | None], path) -> ParallelText:
    sources = [
        f"{tag} {source}" if tag else source
        for text, tag in zip(texts, tags, strict=True)
        for source in text.sources
    ]
    origins = [
        text.origins or (Origin(f"{path}, member {number}", range(1, len(text) + 1), "pair"),)
        for number, text in enumerate(texts, 1)
    ]
    targets = itertools.chain(*(text.targets for text in texts))
    return ParallelText(sources, [*targets], tuple(itertools.chain(*origins)))
