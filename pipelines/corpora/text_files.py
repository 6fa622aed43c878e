"""The user's own text: `<data_dir>/<prefix>.<language>[.gz]`, one sentence a line, line N of one file translating line N of the other."""

import collections
import gzip
import os
import zlib
from collections.abc import Sequence
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
        ValueError: arguments that cannot work; a file that is empty, not UTF-8 or not whole; unequal line counts; no pair left.
        OSError: a file or folder that is missing or cannot be read.
    """
    if not data_dir:
        raise ValueError(
            f"Corpus text_files needs `data_dir`, the folder with the text files. Received: {data_dir!r}. Pass --data_dir=FOLDER."
        )
    if source_language == target_language:
        raise ValueError(f"`source_language` and `target_language` must differ. Received: {source_language!r} twice. Name two languages.")
    if len(prefixes) != 3 or not all(prefixes):
        raise ValueError(
            f"`prefixes` must name three splits: training, validation, test. Received: {','.join(prefixes)!r}. Try train,valid,test."
        )
    folder = Path(data_dir).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"`data_dir` must be an existing folder. Received: {folder}. Check the path.")
    files = [[_locate(folder, f"{prefix}.{language}") for language in (source_language, target_language)] for prefix in prefixes]
    dropped: collections.Counter[str] = collections.Counter()
    splits = [_read_pairs(source, target, dropped) for source, target in files]
    return Corpus("text_files", source_language, target_language, *splits, dropped=dict(dropped))


def read_lines(path: str | os.PathLike) -> list[str]:
    r"""Reads one UTF-8 text file, gzipped if its name ends in ".gz".

    Lines end at "\n" alone, so that U+2028 or U+0085 inside a sentence never shifts the pairs. Surrounding white space ("\r" too) and
    a byte order mark at the beginning are stripped.

    Args:
        path: the file.

    Returns:
        Its lines, empty ones included.

    Raises:
        ValueError: not UTF-8 (names the line), or a truncated or damaged gzip file.
        OSError: the file is missing or cannot be read.
    """
    with gzip.open(path, "rb") if Path(path).suffix == ".gz" else open(path, "rb") as file:
        return decode_lines(file, path)


def decode_lines(file: BinaryIO, name: str | os.PathLike) -> list[str]:
    """The lines of an open file, as `read_lines` gives them.

    Args:
        file: opened for bytes: a file, or standard input.
        name: what errors call it.

    Returns:
        Its lines, empty ones included.

    Raises:
        ValueError: not UTF-8 (names the line), or a truncated or damaged gzip file.
    """
    lines = []
    try:
        for number, line in enumerate(file, start=1):
            lines.append(_decode(line if number > 1 else line.removeprefix(BYTE_ORDER_MARK), name, number))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{name} must be a whole gzip file. After {len(lines)} lines: {error}. Compress or copy it again.") from error
    return lines


def _decode(line: bytes, name: str | os.PathLike, number: int) -> str:
    try:
        return line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}, line {number}: must be UTF-8. Received: byte 0x{line[error.start]:02x} at place {error.start + 1} ({error.reason}). "
            "Convert the file, for example with iconv."
        ) from error


def _locate(folder: Path, name: str) -> Path:
    candidates = [folder / name, folder / f"{name}.gz"]
    found = [path for path in candidates if path.exists()]
    if len(found) == 2:
        raise ValueError(f"Both {found[0]} and {found[1]} exist, and only one can be meant. Move one of them away.")
    if not found:
        names = sorted(path.name for path in folder.iterdir())
        listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        raise FileNotFoundError(
            f"Neither {candidates[0]} nor {candidates[1].name} exists. The folder holds: {listed or 'nothing'}. "
            "Check the prefixes and the languages."
        )
    return found[0]


def _read_pairs(source_path: Path, target_path: Path, dropped: collections.Counter[str]) -> ParallelText:
    sides = [read_lines(source_path), read_lines(target_path)]
    for path, lines in zip((source_path, target_path), sides, strict=True):
        if not lines:
            raise ValueError(f"{path} must hold one sentence a line. Received: an empty file. Fill it, or name another prefix.")
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{source_path} and {target_path} must have as many lines. Received: {len(sides[0])} and {len(sides[1])}. "
            "Line N of one must translate line N of the other."
        )
    pairs = []
    for source, target in zip(*sides, strict=True):
        if not source or not target:
            dropped["empty"] += 1
        elif max(len(source), len(target)) > LONGEST_LINE:
            dropped["huge line"] += 1
        else:
            pairs.append((source, target))
    if not pairs:
        raise ValueError(f"{source_path} and {target_path} have no usable pair: all {len(sides[0])} have an empty side or a huge line.")
    return ParallelText.from_pairs(pairs)
