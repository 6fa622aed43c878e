"""Recipes, the `.flags` files of this folder, and the search and reading of flag files."""

import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

FLAGFILES = pathlib.Path(__file__).parent
# A recipe has some forty lines, and includes a file or two.
MOST_BYTES = 10**6
MOST_NESTED = 50


class Argument(NamedTuple):
    """An argument of a command as it was written, the flag file that it stands in ("" for the
    command line), and the number of its line there.
    """

    text: str
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """Its place in words: a file and line, or "command line"."""
        return f"{self.file}, line {self.line}" if self.file else "command line"


def expand_flagfiles(argv: Sequence[str]) -> list[str]:
    """Replace each --flagfile by the flags in it, those of the files that it includes too, in
    order, so that a later flag overrides an earlier one. A name is looked up in the working folder,
    then among the package's own flag files.
    """
    return [argument.text for argument in placed(argv)]


def placed(argv: Sequence[str]) -> list[Argument]:
    """Do the same as `expand_flagfiles`, and keep the place of each argument."""
    return list(_expanded(map(Argument, argv), ()))


def _expanded(arguments: Iterator[Argument], including) -> Iterator[Argument]:
    for argument in arguments:
        flag, equals, name = argument.text.partition("=")
        if flag not in ("--flagfile", "-flagfile"):
            yield argument
            continue
        if not equals:
            name = next(arguments, Argument("")).text
        try:
            path = _find(name)
            if path in including:
                files = ", ".join(map(str, including))
                raise ValueError(f"flag file {path} includes itself, by way of {files}.")
            if len(including) == MOST_NESTED:
                raise ValueError(
                    f"flag file {name!r} is nested in {MOST_NESTED} others, which is the limit. "
                    "Join some of them."
                )
            inner = _lines(name, path)
        except (OSError, ValueError) as error:
            if not argument.file:
                raise
            raise type(error)(f"{argument.place}: {error}") from error
        yield from _expanded(inner, (*including, path))


def _lines(name, path) -> Iterator[Argument]:
    """Return the flags of a file, without comments; after a % one is quoted as in an address."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise type(error)(f"flag file {name!r} cannot be read: {error.strerror}.") from error
    if len(content) > MOST_BYTES:
        raise ValueError(
            f"flag file {name!r} must have at most {MOST_BYTES:,} bytes. Is it a flag file?"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name}, line {number}: must be UTF-8 text. Save it as UTF-8.") from error
    lines = [line.strip() for line in text.split("\n")]
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise ValueError(f"{name}, line {number}: holds a NUL. Save it as UTF-8 text.")
        if line.startswith("-") and " # " in line:
            raise ValueError(f"{name}, line {number}: a comment needs a line of its own. Move it.")
    return (
        Argument(unquote(line[1:]) if line.startswith("%") else line, name, number)
        for number, line in enumerate(lines, 1)
        if line and not line.startswith(("#", "//"))
    )


def _find(name):
    for folder in (pathlib.Path(), FLAGFILES):
        try:
            path = (folder / name).expanduser()
            if name and path.is_file():
                return path.resolve()
            is_there = bool(name) and path.exists()
        except (OSError, ValueError, RuntimeError):
            # The name is too long, has a NUL, or begins with the home of an unknown user.
            continue
        if is_there:
            raise OSError(f"flag file {name!r} is no regular file. Name a file of text.")
    files = sorted(path.relative_to(FLAGFILES).as_posix() for path in FLAGFILES.rglob("*.flags"))
    shown = name if len(name) < 100 else f"{name[:97]}..."
    raise FileNotFoundError(
        f"flag file {shown!r} is neither in the working folder nor one of the package's own: "
        f"{', '.join(files)}."
    )
