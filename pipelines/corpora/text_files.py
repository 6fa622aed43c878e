"""The user's own text: `<data_dir>/<prefix>.<language>[.gz]`, one sentence a line, line N of one
file translating line N of the other.
"""

import collections
import gzip
import itertools
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from pipelines.corpora.parallel_text import Corpus, ParallelText

LONGEST_LINE = 100_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def load(
    source_language: str,
    target_language: str,
    *,
    data_dir: str | os.PathLike | None,
    prefixes: Sequence[str] = ("train", "valid", "test"),
) -> Corpus:
    """Loads three pairs of text files. All six are looked for before the first is read.

    A pair with an empty side, or with a line over 100,000 characters, is dropped and counted.

    Args:
        source_language: ending of the source files, such as "en".
        target_language: ending of the target files, such as "de".
        data_dir: the folder they lie in.
        prefixes: names of the training, validation and test split.

    Returns:
        The `Corpus`, its three splits non-empty.

    Raises:
        ValueError: arguments that cannot work; a file that is empty, not UTF-8 or not whole;
            unequal line counts; no pair left.
        OSError: a file or folder that is missing or cannot be read.
    """
    if len(prefixes) != 3 or not all(prefixes):
        raise ValueError(
            "`prefixes` must name three splits: training, validation, test. Received: "
            f"{','.join(prefixes)!r}. Try train,valid,test."
        )
    dropped: collections.Counter[str] = collections.Counter()
    streams = [
        stream(source_language, target_language, data_dir=data_dir, prefix=prefix, dropped=dropped)
        for prefix in prefixes
    ]
    splits = [ParallelText.from_pairs(pairs) for pairs in streams]
    return Corpus("text_files", source_language, target_language, *splits, dropped=dict(dropped))


def stream(
    source_language: str,
    target_language: str,
    *,
    data_dir: str | os.PathLike | None,
    prefix: str = "train",
    part: int = 0,
    parts: int = 1,
    dropped: collections.Counter[str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Reads every `parts`-th pair of two text files, line by line: text that memory does not hold.

    Args:
        source_language, target_language, data_dir: as in `load`.
        prefix: name of the split.
        part: which part, from 0 to `parts` - 1.
        parts: how many parts there are; together they give each pair once.
        dropped: counter to which the pairs left out, as in `load`, are added by reason as they are
            met.

    Returns:
        Iterator over (source, target).

    Raises:
        ValueError, OSError: as `load`; what the arguments and missing files cause at once, before
            the first pair is asked for.
    """
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
    folder = Path(data_dir).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"`data_dir` must be an existing folder. Received: {folder}. Check the path."
        )
    paths = [
        _locate(folder, f"{prefix}.{language}") for language in (source_language, target_language)
    ]
    return _read_pairs(paths, part, parts, collections.Counter() if dropped is None else dropped)


def read_lines(path: str | os.PathLike) -> list[str]:
    r"""Reads one UTF-8 text file, gzipped if its name ends in ".gz".

    Lines end at "\n" alone, so that U+2028 or U+0085 inside a sentence never shifts the pairs.
    Surrounding white space ("\r" too) and a byte order mark at the beginning are stripped.

    Args:
        path: the file.

    Returns:
        Its lines, empty ones included.

    Raises:
        ValueError: not UTF-8 (names the line), or a truncated or damaged gzip file.
        OSError: the file is missing or cannot be read.
    """
    with _open(path) as file:
        return list(decode_lines(file, path))


def read_aligned(
    source_file: str | os.PathLike, target_file: str | os.PathLike
) -> tuple[list[str], list[str]]:
    """Reads two files whose lines belong together, none left out.

    Returns:
        The lines of both, as many, at least one.

    Raises:
        ValueError, OSError: as `read_lines`; unequal line counts, or none.
    """
    paths = (Path(source_file), Path(target_file))
    sources, targets = map(read_lines, paths)
    if not sources or len(sources) != len(targets):
        raise ValueError(_unequal(paths, [len(sources), len(targets)]))
    return sources, targets


def _open(path: str | os.PathLike) -> BinaryIO:
    return gzip.open(path, "rb") if Path(path).suffix == ".gz" else open(path, "rb")


def decode_lines(file: BinaryIO, name: str | os.PathLike) -> Iterator[str]:
    """The lines of an open file, as `read_lines` gives them, each when it comes.

    Args:
        file: opened for bytes: a file, or standard input.
        name: what errors call it.

    Yields:
        Its lines, empty ones included.

    Raises:
        ValueError: not UTF-8 (names the line), or a truncated or damaged gzip file.
    """
    for number, line in enumerate(_lines(file, name), start=1):
        yield _decode(line, name, number)


def _lines(file: BinaryIO, name: str | os.PathLike) -> Iterator[bytes]:
    """The lines of an open file as bytes, without a byte order mark."""
    number = 0
    try:
        for number, line in enumerate(file, start=1):
            yield line if number > 1 else line.removeprefix(BYTE_ORDER_MARK)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(
            f"{name} must be a whole gzip file. After {number} lines: {error}. Compress or copy "
            "it again."
        ) from error


def _decode(line: bytes, name: str | os.PathLike, number: int) -> str:
    try:
        return line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}, line {number}: must be UTF-8. Received: byte 0x{line[error.start]:02x} at "
            f"place {error.start + 1} ({error.reason}). "
            "Convert the file, for example with iconv."
        ) from error


def _locate(folder: Path, name: str) -> Path:
    candidates = [folder / name, folder / f"{name}.gz"]
    found = [path for path in candidates if path.exists()]
    if len(found) == 2:
        raise ValueError(
            f"Both {found[0]} and {found[1]} exist, and only one can be meant. Move one of them "
            "away."
        )
    if not found:
        names = sorted(path.name for path in folder.iterdir())
        listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        raise FileNotFoundError(
            f"Neither {candidates[0]} nor {candidates[1].name} exists. The folder holds: "
            f"{listed or 'nothing'}. "
            "Check the prefixes and the languages."
        )
    return found[0]


def _read_pairs(
    paths: Sequence[Path], part: int, parts: int, dropped: collections.Counter[str]
) -> Iterator[tuple[str, str]]:
    lines = usable = 0
    with _open(paths[0]) as source_file, _open(paths[1]) as target_file:
        sides = [
            _lines(file, path) for file, path in zip((source_file, target_file), paths, strict=True)
        ]
        for lines, pair in enumerate(itertools.zip_longest(*sides), start=1):
            if None in pair:
                rest = sum(1 for side in sides for _ in side)
                raise ValueError(
                    _unequal(paths, [lines - 1 if line is None else lines + rest for line in pair])
                )
            if (lines - 1) % parts != part:
                continue
            source, target = (
                _decode(line, path, lines) for line, path in zip(pair, paths, strict=True)
            )
            if not source or not target:
                dropped["empty"] += 1
            elif max(len(source), len(target)) > LONGEST_LINE:
                dropped["huge line"] += 1
            else:
                usable += 1
                yield source, target
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


def _unequal(paths: Sequence[Path], counts: Sequence[int]) -> str:
    for path, count in zip(paths, counts, strict=True):
        if not count:
            return (
                f"{path} must hold one sentence a line. Received: an empty file. Fill it, or "
                "name another."
            )
    return (
        f"{paths[0]} and {paths[1]} must have as many lines. Received: {counts[0]} and "
        f"{counts[1]}. "
        "Line N of one must translate line N of the other."
    )
