"""The absl flags of the options that dataclasses declare: see `pipelines.options`."""

import dataclasses
import os
import pathlib
from collections.abc import Iterable

from absl import flags

from pipelines.options import Declared

# Limits of Linux and of most file systems, in bytes.
LONGEST_NAME = 255
LONGEST_PATH = 4095


@dataclasses.dataclass
class PathParser(flags.ArgumentParser):
    """Parser of a path, or of several joined by commas; "~" at the beginning of one is the user's
    home. `is_folder`: the path of a folder, which a command makes if it is missing.
    """

    is_folder: bool = False
    syntactic_help = "a path"

    def parse(self, argument):
        paths = ",".join(map(os.path.expanduser, argument.split(",")))
        if wrong := _wrong_path(paths):
            raise ValueError(wrong)
        return paths


READ = {int: flags.IntegerParser().convert, float: float, str: str, list: flags.ListParser().parse}


@dataclasses.dataclass
class ValueParser(flags.ArgumentParser):
    """Parser of an option's value, which the option itself checks."""

    option: Declared

    def parse(self, argument):
        try:
            value = READ[self.option.type](argument)
        except ValueError:
            if self.option.type is list:
                raise
            value = argument  # No number, as the option says.
        if wrong := self.option.wrong(value):
            raise ValueError(f"must be {wrong}.")
        return value


def _wrong_path(paths):
    """Return what is wrong with paths that no file can have; None if nothing is."""
    for path in paths.split(","):
        longest = max(len(os.fsencode(name)) for name in path.split("/"))
        if longest > LONGEST_NAME or len(os.fsencode(path)) > LONGEST_PATH:
            return f"a name must have at most {LONGEST_NAME} bytes. Choose a shorter one."
        if "\0" in path:
            return "a path must have no NUL. Leave it out."
        if " --" in path.replace(" -- ", " "):
            return "a path has no flag in it. Write each flag on a line of its own."
        if len(path) > 1 and path[0] == path[-1] and path[0] in "'\"":
            return "a path has no quotes here. Leave them out."
        if path.startswith("~"):
            return f"{path.partition('/')[0]} is no user's home. Write the whole path."
    return None


def no_folder(path: str) -> str | None:
    """Return what prevents a folder at a path; None if it is there or can be made."""
    if not path or "://" in path:
        return None
    existing = pathlib.Path(path).absolute()
    while not os.path.lexists(existing):
        existing = existing.parent
    return None if existing.is_dir() else f"{existing} is no folder. Name another."


def define(options: Iterable[Declared], values: flags.FlagValues) -> None:
    """Add the flags of some options, except those that are defined."""
    for option in options:
        if option.name not in values:
            _define(option, values)


def _define(option, values):
    setting = option.setting
    default = None if setting.is_unset else option.default
    parser = ValueParser(option)
    serializer = flags.ArgumentSerializer()
    if option.type is bool:
        flags.DEFINE_bool(option.name, default, setting.help, values)
        return
    if option.type is list:
        default = None if default is None else list(default)
        serializer = flags.CsvListSerializer(",")
    elif setting.path:
        # A shell leaves the ~ of --model=~/runs/mine as it is.
        parser = PathParser(is_folder=setting.path == "folder")
    flags.DEFINE(parser, option.name, default, setting.help, values, serializer)
