"""The recipes of this folder, one a `.flags` file, and how flag files are found and read from any
folder.
"""

import pathlib

FLAGFILES = pathlib.Path(__file__).parent


def expand_flagfiles(argv, foreign=(), including=()):
    """Replace each --flagfile by the flags in it, those of the files that it includes too.

    A name is looked up in the working folder, then among the package's own flag files.

    Args:
        argv: arguments.
        foreign: names of flags that other commands read. In a file they are left out, so that one
            file serves all commands of a job.
        including: files that are being read, outermost first.

    Returns:
        Arguments without --flagfile, in order, so that a later flag overrides an earlier one.

    Raises:
        FileNotFoundError: if there is no such file, naming those the package has.
        ValueError: if a file includes itself.
    """
    expanded = []
    arguments = iter(argv)
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name not in ("--flagfile", "-flagfile"):
            expanded.append(argument)
            continue
        path = _find(value if equals else next(arguments, ""))
        if path in including:
            raise ValueError(
                f"flag file {path} includes itself, by way of {', '.join(map(str, including))}."
            )
        lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
        inner = [line for line in lines if line and not line.startswith(("#", "//"))]
        expanded += expand_flagfiles(
            [line for line in inner if _name(line) not in foreign], foreign, (*including, path)
        )
    return expanded


def _name(argument):
    return argument.lstrip("-").partition("=")[0]


def _find(name):
    for folder in (pathlib.Path(), FLAGFILES):
        path = (folder / name).expanduser()
        if name and path.is_file():
            return path.resolve()
    files = sorted(path.relative_to(FLAGFILES).as_posix() for path in FLAGFILES.rglob("*.flags"))
    raise FileNotFoundError(
        f"flag file {name!r} is neither in the working folder nor one of the package's own: "
        f"{', '.join(files)}."
    )
