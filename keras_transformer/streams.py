"""Lines and documents from a file or standard input, and to a file or standard output."""

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
    """Yield each line of standard input as it comes."""
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
    """Read the words that the translation of each line must begin with; None without a file."""
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
    """Read a file in a format of `Document`, such as po or srt; None if its format is lines."""
    if file_format == "lines":
        return None
    try:
        with sys.stdin.buffer if name == "-" else line_files.open_bytes(name) as file:
            return Document.read(file.read(), file_format, everything)
    except (ValueError, *line_files.DAMAGED_GZIP) as error:
        source = "standard input" if name == "-" else name
        raise ValueError(f"{source} is no file of --file_format={file_format}: {error}") from error


def answer_lines(answer: Callable[[str], str]) -> None:
    """Answer each line of standard input on standard output at once, until either is closed."""
    for number, line in enumerate(standard_input(), 1):
        try:
            text = answer(line)
        except ValueError as error:
            raise ValueError(f"standard input, line {number}: {error}") from error
        if not write_text("-", text):
            break


def require_writable(name: str, *inputs: str) -> None:
    """Refuse, before a command does its work, an --output that `write_text` cannot write to, or
    that is one of the command's inputs.
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
    existing = (file for file in inputs if os.path.exists(file))
    if path.exists() and any(map(path.samefile, existing)):
        raise ValueError(f"--output={name} is read, and would be lost. Name another file.")
    require_folder(f"--output={name}", path.resolve().parent, "file")


def require_folder(flag: str, folder: str | os.PathLike, kind: str = "folder") -> None:
    """Refuse, before a command does its work, a folder that can be neither made nor written to. The
    error blames a flag, such as "--model_dir=PATH", and asks for another `kind`.
    """
    path = pathlib.Path(folder).expanduser().resolve()
    folder = next(ancestor for ancestor in (path, *path.parents) if ancestor.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(
            f"{flag} cannot be written: {error.strerror} in {folder}. Name another {kind}."
        ) from error


def write_lines(name: str, lines: Iterable[str]) -> bool:
    """Write each string as one line, as `write_text` does."""
    return write_text(name, as_lines(lines))


def write_text(name: str, text: str) -> bool:
    """Write to standard output if the name is "-", else to a file by `whole_files.write_text`.
    Devices and pipes, such as /dev/null, are opened and written to directly.

    Returns:
        False if standard output was closed by its reader, else True.
    """
    encoded = text.encode("utf-8")
    if name != "-":
        # An anonymous pipe, such as /dev/stdout, has no other path.
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
    """Discard what the reader, such as `head`, no longer reads: Python would try to write the rest
    of the buffer at exit, and report an error.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
