"""Several corpora as one, weighted and tagged: a model of many languages or domains (Johnson et al.
2017: a tag asks for the language).

Example:
    {"corpora": [
        {"corpus": "text_files", "data_dir": "news", "source_language": "en", "target_language":
        "de", "weight": 2.0, "tag": "<2de>"}, {"corpus": "text_files", "data_dir": "talks",
        "source_language": "en", "target_language": "fr", "tag": "<2fr>"}
    ]}
"""

import itertools
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from pipelines.corpora.parallel_text import Corpus, Origin, ParallelText
from pipelines.corpora.refusals import READERS, check_member
from pipelines.dropped import Dropped
from pipelines.json_files import read_object

TAG = re.compile(r"<[A-Za-z0-9_-]+>")
NEEDED = ("corpus", "source_language", "target_language")
FOLDERS = ("data_dir", "cache_dir")
PURPOSES = {"train": "train on", "valid": "validate on", "test": "test on"}


def _is_three_names(value) -> bool:
    return (
        isinstance(value, list) and len(value) == 3 and all(isinstance(name, str) for name in value)
    )


def _is_prefixes(value) -> bool:
    return isinstance(value, list) and _is_three_names([name or "" for name in value])


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


A_STRING = ("a string", lambda value: isinstance(value, str) and value != "")
THREE_NAMES = ("a list of three strings", _is_three_names)
PREFIXES = (
    "a list of three strings, or null for an empty split of text_files or a treebank",
    _is_prefixes,
)
# The keys of a member: key -> (what its value must be, a function that checks it).
KEYS = {
    "corpus": A_STRING,
    "source_language": A_STRING,
    "target_language": A_STRING,
    "data_dir": A_STRING,
    "cache_dir": A_STRING,
    "dataset": A_STRING,
    "prefixes": PREFIXES,
    "splits": THREE_NAMES,
    "seed": (
        "a whole number",
        lambda value: isinstance(value, int) and not isinstance(value, bool),
    ),
    "weight": (
        "a positive number",
        lambda value: _is_number(value) and 0 < value <= sys.float_info.max,
    ),
    "tag": (
        "a string such as <2de>: letters, digits, _ and - between < and >",
        lambda value: isinstance(value, str) and TAG.fullmatch(value),
    ),
}


def load(
    path: str | os.PathLike | None,
    load_corpus: Callable[..., Corpus],
    *,
    cache_dir: str | os.PathLike | None = None,
    tree_leaves: str | None = None,
    strict: bool = False,
) -> Corpus:
    """Load the corpora that a JSON file lists, and join their splits.

    Args:
        path: the JSON file: `{"corpora": [member, ...]}`. A member has the keywords of
            `load_corpus`, its name as "corpus", and may have "weight", how often a pair of it is
            seen in one epoch (positive, 1.0 if not given; 0.5: every pair each second epoch), and
            "tag", put before each of its sources with a space. Relative folders in it are relative
            to the file's folder.
        load_corpus: function that loads a member by its name and its keywords, as
            `pipelines.corpora.load` does.
        cache_dir: folder for downloads of the members that name none.
        tree_leaves: what stands for the words of trees, in all treebanks alike.
        strict: whether members refuse what they would drop.

    Returns:
        The `Corpus`. Different languages of the members are joined by "+". The validation and test
        splits are tagged too.

    Raises:
        ValueError: no `path`, JSON that says something else, or a member that cannot be loaded.
        OSError: a file that is missing or cannot be read or downloaded.
    """
    said = members(path)
    shared = {"cache_dir": cache_dir, "tree_leaves": tree_leaves}
    shared |= {"strict": True} if strict else {}
    corpora = [
        _load_member(f"{path}, member {number}", member, load_corpus, shared)
        for number, member in enumerate(said, start=1)
    ]
    dropped = Dropped.joined(corpus.dropped for corpus in corpora)
    tags = [member.get("tag") for member in said]
    # Those of the members themselves are the symbols of treebanks.
    all_tags = [*filter(None, tags), *(tag for corpus in corpora for tag in corpus.tags)]
    weights = np.repeat(
        [float(member.get("weight", 1)) for member in said],
        [len(corpus.train) for corpus in corpora],
    )
    splits = {
        split: _concatenated([getattr(corpus, split) for corpus in corpora], tags, path)
        for split in ("train", "valid", "test")
    }
    if empty := [split for split, text in splits.items() if not len(text)]:
        raise ValueError(
            f"{path} must have a member with a split to {PURPOSES[empty[0]]}. Received: none. Name "
            f"its {empty[0]} prefix or split."
        )
    return Corpus(
        "mixture",
        _joined(corpus.source_language for corpus in corpora),
        _joined(corpus.target_language for corpus in corpora),
        **splits,
        dropped=dropped,
        tags=tuple(dict.fromkeys(all_tags)),
        weights=None if np.all(weights == 1) else weights,
    )


def members(path: str | os.PathLike | None) -> list[dict]:
    """Read what a mixture consists of.

    Args:
        path: the JSON file.

    Returns:
        The keywords of each member, with folders beside the file.

    Raises:
        ValueError, OSError: as `load`.
    """
    if not path:
        raise ValueError(
            "Corpus mixture needs `mixture`, the JSON file that lists its members. Received: "
            f"{path!r}. Pass --mixture=FILE."
        )
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(
            f"`mixture` must be an existing JSON file. Received: {path}. Check the path."
        )
    content = read_object(file, "Correct the file.")
    said = content.get("corpora")
    if not isinstance(said, list) or not said or len(content) != 1:
        raise ValueError(
            f'{path} must be {{"corpora": [...]}}, with one member or more. Received: '
            f"{', '.join(content) or 'no key'}. List the members."
        )
    for number, member in enumerate(said, start=1):
        _check(f"{path}, member {number}", member)
    return [
        {
            key: _placed(value, file.parent) if key in FOLDERS else value
            for key, value in member.items()
        }
        for member in said
    ]


def _check(name: str, member) -> None:
    if not isinstance(member, dict):
        raise ValueError(
            f'{name}: must be {{"corpus": ..., ...}}. Received: {member!r}. See '
            "pipelines/corpora/mixture.py."
        )
    for key, value in member.items():
        if key not in KEYS:
            raise ValueError(
                f"{name}: `{key}` is no key of a member. Known: {', '.join(sorted(KEYS))}. "
                "Correct or remove it."
            )
        expected, is_met = KEYS[key]
        if not is_met(value):
            raise ValueError(
                f"{name}: `{key}` must be {expected}. Received: {value!r}. Correct it."
            )
    if missing := [key for key in NEEDED if key not in member]:
        raise ValueError(
            f"{name}: `{missing[0]}` is missing. Received: {', '.join(member) or 'no key'}. Add it."
        )
    if member["corpus"] in ("mixture", "records"):
        raise ValueError(
            f"{name}: `corpus` must be of text, and no mixture. Received: {member['corpus']!r}. "
            "List what it was made of."
        )
    check_member(name, member)


def _placed(folder: str, beside: Path) -> str:
    # gs:// is no path.
    return folder if "://" in folder else str(beside / Path(folder).expanduser())


def _load_member(name: str, member: dict, load_corpus: Callable, shared: dict) -> Corpus:
    corpus = member["corpus"]
    own = {key: value for key, value in member.items() if key not in ("corpus", "weight", "tag")}
    read = {key: value for key, value in shared.items() if corpus in READERS.get(key, [corpus])}
    try:
        return load_corpus(corpus, **{**read, **own})
    except (ValueError, OSError) as error:
        kind = ValueError if isinstance(error, ValueError) else OSError
        raise kind(f"{name}: {error}") from error


def _joined(languages) -> str:
    return "+".join(dict.fromkeys(languages))


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
