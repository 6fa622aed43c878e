"""Constituency trees in brackets, as in the Penn Treebank (Marcus et al. 1993): reading, writing,
and what is usually removed before a parser learns from them (Vaswani et al. 2017, section 6.3).
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator

# Other white space than ASCII's, such as a thin space, is part of a word.
TOKEN = re.compile(r"[()]|[^()\s]+", re.ASCII)
# The label of a position without a word: traces, and what was left out.
NOTHING = "-NONE-"
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}
ESCAPES = str.maketrans({word: escape for escape, word in BRACKETS.items()})


@dataclasses.dataclass(frozen=True)
class Tree:
    """A constituent.

    Attributes:
        label: such as "NP-SBJ"; "" for brackets without one.
        children: constituents and words, in order. A pre-terminal has one child, a word.
    """

    label: str
    children: tuple["Tree | str", ...]

    def __str__(self):
        """The tree in brackets, on one line."""
        label = self.label or ("" if self.is_preterminal else " ")
        return f"({label} {' '.join(map(str, self.children))})".replace("(  ", "( ")

    @property
    def is_preterminal(self) -> bool:
        """Whether it is a part of speech and its word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def preterminals(self) -> Iterator["Tree"]:
        """All parts of speech with their words, in order."""
        if self.is_preterminal:
            yield self
            return
        for child in self.children:
            yield from child.preterminals()

    def spans(
        self, counts: Callable[["Tree"], bool] = lambda preterminal: True
    ) -> list[tuple["Tree", int, int]]:
        """All constituents but parts of speech, outer ones first, with the words that each spans,
        from the first to before the last number.

        Args:
            counts: whether the word of a part of speech is counted.
        """
        found = []

        def walk(tree, begin):
            if tree.is_preterminal:
                return begin + counts(tree)
            place = len(found)
            end = begin
            for child in tree.children:
                end = walk(child, end)
            found.insert(place, (tree, begin, end))
            return end

        walk(self, 0)
        return found

    @property
    def words(self) -> list[str]:
        """The words as they stand in the brackets, escapes and all."""
        return [tree.children[0] for tree in self.preterminals()]


def parse(text: str) -> Tree:
    """Read one tree.

    Args:
        text: brackets around a label and either one word or constituents.

    Returns:
        The tree; one with the label "" around several that stand side by side. Brackets without a
        label around a single tree are left out.

    Raises:
        ValueError: saying which bracket is without its fellow, or that a word stands beside others.
    """
    open_ones = [("", [])]
    after_opening = False
    for number, token in enumerate(TOKEN.findall(text), 1):
        if token == "(":
            open_ones.append(("", []))
        elif token == ")":
            if len(open_ones) == 1:
                raise ValueError(f"token {number}, ')', closes a bracket that was not opened")
            label, children = open_ones.pop()
            open_ones[-1][1].append(_constituent(label, children, number))
        elif after_opening:
            open_ones[-1] = (token, [])
        else:
            open_ones[-1][1].append(token)
        after_opening = token == "("
    if len(open_ones) > 1:
        count = len(open_ones) - 1
        raise ValueError(f"{count} {'bracket is' if count == 1 else 'brackets are'} not closed")
    [(_, children)] = open_ones
    if any(isinstance(child, str) for child in children):
        raise ValueError("a word stands outside all brackets")
    return _without_empty_label(Tree("", tuple(children)))


def _constituent(label, children, number):
    words = [child for child in children if isinstance(child, str)]
    if words and len(children) > 1:
        raise ValueError(
            f"the bracket that token {number} closes holds the word {words[0]!r} beside others: a "
            "word needs brackets of its own, around its part of speech and itself"
        )
    return Tree(label, tuple(children))


def _without_empty_label(tree):
    while not tree.label and len(tree.children) == 1 and isinstance(tree.children[0], Tree):
        tree = tree.children[0]
    return tree


def read(lines: Iterable[str], name: str) -> Iterator[Tree]:
    """Read the trees of a file, each on one line or on several.

    Args:
        lines: of the file. A tree ends where all its brackets are closed.
        name: of the file, for errors.

    Raises:
        ValueError: naming the file, the tree's first line and what is wrong.
    """
    pending = []
    first = 0
    depth = 0
    for number, line in enumerate(lines, 1):
        if not pending and not line.strip():
            continue
        first = first if pending else number
        pending.append(line)
        depth += line.count("(") - line.count(")")
        if depth <= 0:
            yield _parse_from(pending, name, first)
            pending = []
            depth = 0
    if pending:
        yield _parse_from(pending, name, first)


def _parse_from(lines, name, first):
    try:
        return parse("\n".join(lines))
    except ValueError as error:
        raise ValueError(f"{name}, line {first}: {error}.") from None


def plain_label(label: str) -> str:
    """A label without function tags and indices: "NP-SBJ-1" and "NP=2" are "NP". A label that
    begins with "-", such as "-LRB-", stays.
    """
    return label if label.startswith("-") else re.split("[-=]", label, maxsplit=1)[0] or label


def plain(tree: Tree) -> Tree | None:
    """A tree without traces, function tags and indices; unary chains stay.

    Returns:
        The tree; None if it has no words.
    """
    if tree.label == NOTHING:
        return None
    if tree.is_preterminal:
        return Tree(plain_label(tree.label), tree.children)
    children = tuple(child for child in map(plain, tree.children) if child is not None)
    return Tree(plain_label(tree.label), children) if children else None


def unescaped(word: str) -> str:
    r"""A word as it stands in the text: "-LRB-" is "(", "1\/2" is "1/2"."""
    return BRACKETS.get(word) or word.replace("\\/", "/").replace("\\*", "*")


def escaped(word: str) -> str:
    """A word of a text as it stands in brackets. Slashes stay as they are."""
    return word.translate(ESCAPES)
