"""Flags that are paths. A shell leaves the ~ of --model=~/runs/mine as it is."""

import os

from absl import flags


class PathParser(flags.ArgumentParser):
    """Reads a path, or several joined by commas; "~" at the beginning of one is the user's home."""

    syntactic_help = "a path"

    def parse(self, argument):
        return ",".join(map(os.path.expanduser, argument.split(",")))


def DEFINE_path(name: str, default: str | None, help: str, flag_values: flags.FlagValues) -> None:
    """Add a flag whose value is a path, as absl's `DEFINE_string` adds one of any text."""
    flags.DEFINE(PathParser(), name, default, help, flag_values, flags.ArgumentSerializer())
