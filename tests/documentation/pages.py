"""The pages that users read, cut into what can be checked: code blocks, commands, prose."""

import pathlib
import re
import shlex
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[2]
README = ROOT / "README.md"
# Blocks of PAGES are run; of OTHER_PAGES only words, links and lines are checked.
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
OTHER_PAGES = [
    ROOT / name
    for name in (
        *("CONTRIBUTING.md", "CHANGELOG.md", "saved_models/README.md", "benchmarks/README.md"),
        "benchmarks/LOG.md",
    )
]
FENCE = re.compile(r"^```(\w*) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One fenced block: "```sh", "```python", "```json mixture.json" (a file), "```text"."""

    language: str
    file: str
    code: str


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    return [Block(*match.groups()) for match in FENCE.finditer(text)]


def prose(text: str) -> str:
    """A page without its blocks and tables."""
    return re.sub(r"^\|.*\n", "", FENCE.sub("", text), flags=re.MULTILINE)


def commands(code: str) -> list[str]:
    """The commands of a shell block: one per line, unless it ends in a backslash or in quotes."""
    complete = []
    command = ""
    for line in code.splitlines(keepends=True):
        command += line
        if command.rstrip("\n").endswith("\\") or not _quotes_are_closed(command):
            continue
        if command.strip():
            complete.append(command.strip())
        command = ""
    return complete


def _quotes_are_closed(text):
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def words(command: str) -> list[str]:
    """The words of a command, with `|`, `<` and `>` as words of their own."""
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars="|<>")
    lexer.whitespace_split = True
    return list(lexer)
