"""Flags that are paths. A shell leaves the ~ of --model=~/runs/mine as it is."""

import os
import pathlib

from absl import flags

# Of Linux, and of most file systems.
LONGEST_NAME = 255
LONGEST_PATH = 4095


class PathParser(flags.ArgumentParser):
    """Reads a path, or several joined by commas; "~" at the beginning of one is the user's home.

    Args:
        is_folder: whether a command makes a folder there, if there is none.
    """

    syntactic_help = "a path"

    def __init__(self, is_folder: bool = False):
        self.is_folder = is_folder

    def parse(self, argument):
        return ",".join(map(os.path.expanduser, argument.split(",")))


def wrong_path(paths: str) -> str | None:
    """Say what is wrong with paths, if no file can have such a name."""
    for path in paths.split(","):
        longest = max(len(os.fsencode(name)) for name in path.split("/"))
        if longest > LONGEST_NAME or len(os.fsencode(path)) > LONGEST_PATH:
            return f"a name must have at most {LONGEST_NAME} bytes. Choose a shorter one."
        if "\0" in path:
            return "a path must have no NUL. Leave it out."
    return None


def no_folder(path: str) -> str | None:
    """Say what is there instead, if no folder can be made at a path."""
    if not path or "://" in path:
        return None
    there = pathlib.Path(path).absolute()
    while not os.path.lexists(there):
        there = there.parent
    return None if there.is_dir() else f"{there} is no folder. Name another."


def DEFINE_path(name: str, default: str | None, help: str, flag_values: flags.FlagValues) -> None:
    """Add a flag whose value is a path, as absl's `DEFINE_string` adds one of any text."""
    flags.DEFINE(PathParser(), name, default, help, flag_values, flags.ArgumentSerializer())


def DEFINE_folder(name: str, default: str | None, help: str, flag_values: flags.FlagValues) -> None:
    """The same of a folder that a command makes, if there is none."""
    parser = PathParser(is_folder=True)
    flags.DEFINE(parser, name, default, help, flag_values, flags.ArgumentSerializer())
