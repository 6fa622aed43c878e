"""Lines from a file or standard input, and to a file or standard output."""

import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence

from pipelines import line_files, whole_files
from pipelines.documents import Document
from pipelines.line_files import as_lines
from pipelines.whole_files import errors_naming


def standard_input() -> Iterator[str]:
    """Give each line of standard input when it comes."""
    return line_files.decode_lines(sys.stdin.buffer, "standard input")


def read_lines(name: str) -> list[str]:
    """Read the lines of a file, or of standard input if the name is "-"."""
    is_stdin = name == "-"
    lines = list(standard_input()) if is_stdin else line_files.read_lines(name)
    if not lines:
        raise ValueError(
            f"{'standard input' if is_stdin else name} is empty: it must have at least one line."
        )
    return lines


def read_prefixes(name: str | None, lines: Sequence[str]) -> list[str] | None:
    """Read the words that the translations of lines must begin with; None if no file is named."""
    if not name:
        return None
    prefixes = line_files.read_lines(name)
    if len(prefixes) != len(lines):
        raise ValueError(
            f"--prefix_file must have as many lines as the input. Received: {len(prefixes):,} "
            f"and {len(lines):,}."
        )
    return prefixes


def read_document(name: str, file_format: str, everything: bool) -> Document | None:
    """Read a file that people translate, as `Document.read`; None if its format is lines."""
    if file_format == "lines":
        return None
    try:
        with sys.stdin.buffer if name == "-" else line_files.open_bytes(name) as file:
            return Document.read(file.read(), file_format, everything)
    except (ValueError, *line_files.DAMAGED_GZIP) as error:
        named = "standard input" if name == "-" else name
        raise ValueError(f"{named} is no file of --file_format={file_format}: {error}") from error


def answer_lines(answer: Callable[[str], str]) -> None:
    """Answer each line of standard input on standard output at once, until either is closed."""
    for number, line in enumerate(standard_input(), 1):
        try:
            text = answer(line)
        except ValueError as error:
            raise ValueError(f"standard input, line {number}: {error}") from error
        if not write_text("-", text):
            break


def require_writable(name: str, *read: str | None) -> None:
    """Refuse a name that `write_text` cannot write to, before a command does its work, or that is
    one of the files that are read.
    """
    if name == "-":
        return
    path = pathlib.Path(name)
    if path.is_dir():
        raise IsADirectoryError(
            f"--output must be a file. Received: the folder {name}. Name a file in it."
        )
    if path.exists() and not path.is_file():
        if not os.access(path, os.W_OK):
            raise PermissionError(
                f"--output={name} cannot be written: permission denied. Name another file."
            )
        return
    if path.exists() and any(one and os.path.exists(one) and path.samefile(one) for one in read):
        raise ValueError(f"--output={name} is read, and would be lost. Name another file.")
    require_folder(f"--output={name}", path.resolve().parent, "file")


def require_folder(said: str, folder: str | os.PathLike, kind: str = "folder") -> None:
    """Refuse, before a command does its work, a folder that can be neither made nor written to. The
    error names what is said, and asks for another of a kind.
    """
    path = pathlib.Path(folder).expanduser().resolve()
    folder = next(one for one in (path, *path.parents) if one.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(
            f"{said} cannot be written: {error.strerror} in {folder}. Name another {kind}."
        ) from error


def write_lines(name: str, lines: Iterable[str]) -> bool:
    """Write each string as one line, as `write_text` does."""
    return write_text(name, as_lines(lines))


def write_text(name: str, text: str) -> bool:
    """Write to standard output if the name is "-", else to a file as `whole_files.write_text`. What
    is no file, such as /dev/null or a pipe, is written to as it is.

    Returns:
        False if standard output was closed by its reader, else True.
    """
    encoded = text.encode("utf-8")
    if name != "-":
        # A pipe without a name, such as /dev/stdout, has no path but this one.
        path = pathlib.Path(name)
        if path.exists() and not path.is_file():
            with errors_naming(name):
                path.write_bytes(encoded)
        else:
            whole_files.write_text(path.resolve(), text)
        return True
    try:
        with errors_naming("standard output"):
            sys.stdout.buffer.write(encoded)
            sys.stdout.buffer.flush()
    except BrokenPipeError:
        leave_standard_output()
        return False
    return True


def leave_standard_output() -> None:
    """Forget what its reader, such as `head`, no longer reads: what is left in the buffer would be
    tried again at exit, and be reported as an error.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
