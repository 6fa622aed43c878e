"""Lines of UTF-8 files, gzipped or not."""

import gzip
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The errors that gzip raises for a truncated or damaged file.
DAMAGED_GZIP = (EOFError, gzip.BadGzipFile, zlib.error)
# How files of gzip, bzip2, xz, Zstandard and zip begin.
PACKED = re.compile(rb"\x1f\x8b|BZh\d1AY&SY|\xfd7zXZ|\x28\xb5\x2f\xfd|PK\x03\x04")


def read_lines(path: str | os.PathLike) -> list[str]:
    r"""Read the lines of a UTF-8 file, gzipped if its name ends in ".gz", empty ones included. Only
    "\n" ends a line, so that U+2028 or U+0085 inside a sentence never shifts the pairs. Surrounding
    white space ("\r" too) and a byte order mark at the beginning are stripped.
    """
    with open_bytes(path) as file:
        return list(decode_lines(file, path))


def as_lines(texts: Iterable[str]) -> str:
    """Join texts, one a line, for `read_lines`: line breaks inside a text become spaces."""
    return "".join(re.sub(r"\r\n?|\n", " ", text.rstrip("\r\n")) + "\n" for text in texts)


def read_aligned(
    source_file: str | os.PathLike, target_file: str | os.PathLike
) -> tuple[list[str], list[str]]:
    """Read two files that must have equally many lines, at least one."""
    paths = (Path(source_file), Path(target_file))
    sources, targets = map(read_lines, paths)
    if not sources or len(sources) != len(targets):
        raise ValueError(unequal(paths, [len(sources), len(targets)]))
    return sources, targets


def existing_folder(data_dir: str | os.PathLike) -> Path:
    """Return the path of a corpus' folder, which must exist."""
    folder = Path(os.path.expanduser(data_dir))
    if not folder.is_dir():
        raise FileNotFoundError(
            f"`data_dir` must be an existing folder. Received: {folder}. Check the path."
        )
    return folder


def locate(folder: Path, name: str, *arguments: str) -> Path:
    """Find a file or its gzipped form; exactly one must exist. Errors name the arguments that the
    name was made of, and what the folder holds.
    """
    candidates = [folder / name, folder / f"{name}.gz"]
    existing = [path for path in candidates if path.exists()]
    if len(existing) == 2:
        raise ValueError(
            f"Both {existing[0]} and {existing[1]} exist, and only one can be meant. Move one of "
            "them away."
        )
    if not existing:
        paths = sorted(folder.iterdir())
        names = [path.name + " (a link to nothing)" * (not path.exists()) for path in paths]
        listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        raise FileNotFoundError(
            f"Neither {candidates[0]} nor {candidates[1].name} exists. The folder holds: "
            f"{listed or 'nothing'}. "
            f"Check {' and '.join(f'`{argument}`' for argument in arguments) or 'the names'}."
        )
    return existing[0]


def decode_lines(file: BinaryIO, name: str | os.PathLike) -> Iterator[str]:
    """Decode the lines of a binary file lazily, as `read_lines` does."""
    for number, line in enumerate(byte_lines(file, name), start=1):
        yield decode(line, name, number)


def open_bytes(path: str | os.PathLike) -> BinaryIO:
    """Open a file for reading, through gzip if its name ends in ".gz"."""
    return gzip.open(path, "rb") if Path(path).suffix == ".gz" else open(path, "rb")


def byte_lines(
    file: BinaryIO, name: str | os.PathLike, are_several: bool = False
) -> Iterator[bytes]:
    """Yield the lines of an open file as bytes, without a byte order mark. If `are_several`, refuse
    a single line with carriage returns, the line ends of old Mac programs.
    """
    number = 0
    try:
        for number, line in enumerate(file, start=1):
            if are_several and number == 1 and b"\r" in line.strip() and not file.peek(1):
                raise ValueError(
                    f"{name} must end its lines with line feeds. Received: one line with carriage "
                    r"returns. Convert the file, for example with tr '\r' '\n'."
                )
            if number == 1 and PACKED.match(line):
                raise ValueError(
                    f"{name} must hold lines of text. Received: a packed file. Unpack it. Only "
                    "files of gzip whose names end in .gz are unpacked."
                )
            yield line if number > 1 else line.removeprefix(BYTE_ORDER_MARK)
    except DAMAGED_GZIP as error:
        raise ValueError(
            f"{name} must be a whole gzip file. After {number} lines: {error}. Compress or copy "
            "it again."
        ) from error


def decode(line: bytes, name: str | os.PathLike, number: int) -> str:
    """Decode and strip line `number` of the file `name`, both of which an error names."""
    if 3 * line.count(0) > len(line):
        raise ValueError(
            f"{name}, line {number}: must be UTF-8. Received: {line.count(0)} NULs, as UTF-16 has. "
            "Convert the file, for example with iconv -f UTF-16."
        )
    try:
        return line.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}, line {number}: must be UTF-8. Received: byte 0x{line[error.start]:02x} at "
            f"place {error.start + 1} ({error.reason}). Convert the file, for example with iconv."
        ) from error


def unequal(paths: Sequence[Path], counts: Sequence[int]) -> str:
    """Return the error message for two files with different numbers of lines, or without lines."""
    for path, count in zip(paths, counts, strict=True):
        if not count:
            return (
                f"{path} must hold one sentence a line. Received: an empty file. Fill it, or "
                "name another."
            )
    return (
        f"{paths[0]} and {paths[1]} must have as many lines. Received: {counts[0]} and "
        f"{counts[1]}. Line N of one must translate line N of the other."
    )
