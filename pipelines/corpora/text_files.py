"""The user's own text: `<data_dir>/<prefix>.<language>[.gz]`, one sentence a line, line N of one
file translating line N of the other.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines.corpora.line_files import (
    byte_lines,
    decode,
    existing_folder,
    locate,
    open_bytes,
    unequal,
)
from pipelines.corpora.parallel_text import Corpus, ParallelText, objection
from pipelines.dropped import Dropped


def load(
    source_language: str,
    target_language: str,
    *,
    data_dir: str | os.PathLike | None,
    prefixes: Sequence[str | None] = ("train", "valid", "test"),
    strict: bool = False,
) -> Corpus:
    """Load three pairs of text files. All are looked for before the first is read.

    A pair with an empty side, or with a line over 100,000 characters, is dropped and counted.

    Args:
        source_language: ending of the source files, such as "en".
        target_language: ending of the target files, such as "de".
        data_dir: their folder.
        prefixes: names of the training, validation and test split; None for no pairs, as a member
            of a mixture may have it.
        strict: whether a pair that would be dropped is refused.

    Returns:
        The `Corpus`, those of its splits non-empty that have a name.

    Raises:
        ValueError: arguments that cannot work; a file that is empty, not UTF-8 or not whole;
            unequal line counts; no pair left.
        OSError: a file or folder that is missing or cannot be read.
    """
    if len(prefixes) != 3 or "" in prefixes:
        raise ValueError(
            "`prefixes` must name three splits: training, validation, test. Received: "
            f"{','.join(map(str, prefixes))!r}. Try train,valid,test; a member of a mixture may "
            "have null for no pairs."
        )
    dropped = Dropped(strict=strict)
    paths = [
        None if prefix is None else _paths(source_language, target_language, data_dir, prefix)
        for prefix in prefixes
    ]
    splits = [
        ParallelText.from_rows(_read_pairs(both, 0, 1, dropped), str(both[1]))
        if both
        else ParallelText([], [])
        for both in paths
    ]
    return Corpus("text_files", source_language, target_language, *splits, dropped=dropped)


def stream(
    source_language: str,
    target_language: str,
    *,
    data_dir: str | os.PathLike | None,
    prefix: str = "train",
    part: int = 0,
    parts: int = 1,
    dropped: Dropped | None = None,
) -> Iterator[tuple[str, str]]:
    """Read every `parts`-th pair of two text files line by line, for text that memory cannot hold.

    Args:
        source_language, target_language, data_dir: as in `load`.
        prefix: name of the split.
        part: which part, from 0 to `parts` - 1.
        parts: how many parts there are; together they give each pair once.
        dropped: counter that counts the pairs left out, as in `load`, by reason as they are met.

    Returns:
        Iterator over (source, target).

    Raises:
        ValueError, OSError: as `load`. Wrong arguments and missing files raise at once, before the
            first pair is asked for.
    """
    paths = _paths(source_language, target_language, data_dir, prefix)
    rows = _read_pairs(paths, part, parts, Dropped() if dropped is None else dropped)
    return ((source, target) for _, source, target in rows)


def _paths(source_language, target_language, data_dir, prefix):
    """The two files of a split."""
    if not data_dir:
        raise ValueError(
            "Corpus text_files needs `data_dir`, the folder with the text files. Received: "
            f"{data_dir!r}. Pass --data_dir=FOLDER."
        )
    if source_language == target_language:
        raise ValueError(
            f"`source_language` and `target_language` must differ. Received: {source_language!r} "
            "twice. Name two languages."
        )
    folder = existing_folder(data_dir)
    languages = {"source_language": source_language, "target_language": target_language}
    return [
        locate(folder, f"{prefix}.{language}", argument, "prefixes")
        for argument, language in languages.items()
    ]


def _read_pairs(
    paths: Sequence[Path], part: int, parts: int, dropped: Dropped
) -> Iterator[tuple[int, str, str]]:
    """The line of each pair that is kept, its source and its target."""
    lines = usable = 0
    with open_bytes(paths[0]) as source_file, open_bytes(paths[1]) as target_file:
        sides = [
            byte_lines(file, path)
            for file, path in zip((source_file, target_file), paths, strict=True)
        ]
        for lines, pair in enumerate(itertools.zip_longest(*sides), start=1):
            if None in pair:
                rest = sum(1 for side in sides for _ in side)
                raise ValueError(
                    unequal(paths, [lines - 1 if line is None else lines + rest for line in pair])
                )
            if (lines - 1) % parts != part:
                continue
            source, target = (
                decode(line, path, lines) for line, path in zip(pair, paths, strict=True)
            )
            if reason := objection(source, target):
                path = paths[not objection(source, source)]
                dropped.leave_out(reason, f"{path}, line {lines}")
            else:
                usable += 1
                yield lines, source, target
    if not lines:
        raise ValueError(
            f"{paths[0]} must hold one sentence a line. Received: an empty file. Fill it, or "
            "name another prefix."
        )
    if not usable and parts == 1:
        raise ValueError(
            f"{paths[0]} and {paths[1]} have no usable pair: all {lines} have an empty side or a "
            "huge line."
        )
