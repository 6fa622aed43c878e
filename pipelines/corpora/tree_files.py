"""Files of trees in brackets: which lines a tree has, and what is left out of a file that has
damaged ones.
"""

from collections.abc import Iterable, Iterator

from pipelines.dropped import Dropped
from pipelines.trees import DamagedTree, Tree, side_by_side, without_empty_label


def read(
    lines: Iterable[str], name: str, dropped: Dropped | None = None
) -> Iterator[tuple[int, Tree]]:
    """Read the trees of a file: several on one line, or one on several lines, of which all but the
    first are indented. So a bracket that is missing in one tree cannot take in the next.

    Real treebanks have damaged trees, such as `(())` where a parser found none. What stands in the
    lines of one is left out, to the next line that is not indented: parts of it are no trees.

    Args:
        lines: of the file, with the white space that they begin with.
        name: of the file, for errors.
        dropped: counts the damaged trees; None: they are refused.

    Yields:
        The line that each tree begins in, from 1, and the tree.

    Raises:
        ValueError: naming the file, the tree's first line and what is wrong.
    """
    dropped = Dropped(strict=True) if dropped is None else dropped
    for block, end in _blocks(lines):
        found = []
        first = block[0][0]
        try:
            for first, text in _balanced(block):
                found += [(first, without_empty_label(tree)) for tree in side_by_side(text)]
        except DamagedTree as error:
            more = f"; line {end}, not indented, begins another"
            more = more if end and error.reason == "unclosed bracket" else ""
            place = f"{name}, line {first}"
            dropped.leave_out(error.reason, place, f"{place}: {error}{more}.")
        else:
            yield from found


def _blocks(lines):
    """The lines, with their numbers, from each that is not indented to the next, and the number of
    that, None at the end. A line that only closes brackets goes on. Empty lines are left out.
    """
    block = []
    depth = 0
    for number, line in enumerate(lines, 1):
        text = line.lstrip()
        if not text:
            continue
        is_outermost = block and _indentation(line) <= _indentation(block[0][1])
        if is_outermost and (text[0] == "(" or (depth <= 0 and text[0] != ")")):
            yield block, number
            block = []
            depth = 0
        block.append((number, line))
        depth += line.count("(") - line.count(")")
    if block:
        yield block, None


def _balanced(block):
    """The texts of a block whose brackets match, and the line that each begins in."""
    pending = []
    depth = 0
    for number, line in block:
        pending.append((number, line))
        depth += line.count("(") - line.count(")")
        if depth <= 0:
            yield pending[0][0], "\n".join(text for _, text in pending)
            pending = []
            depth = 0
    if pending:
        yield pending[0][0], "\n".join(text for _, text in pending)


def _indentation(line):
    return len(line) - len(line.lstrip())
