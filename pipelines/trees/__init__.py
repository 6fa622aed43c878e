"""Constituency trees in brackets, as in the Penn Treebank (Marcus et al. 1993): reading, writing,
and what is usually removed before a parser learns from them (Vaswani et al. 2017, section 6.3).
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pipelines import needing

# Only ASCII white space separates words: a thin space, say, is part of one.
TOKEN = re.compile(r"[()]|[^()\s]+", re.ASCII)
# The label of a position without a word: traces, and what was left out.
NOTHING = "-NONE-"
# A part of speech that is not known.
WORD = "XX"
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}
# Only these must be escaped: no other characters look like brackets of the tree.
ESCAPES = {"(": "-LRB-", ")": "-RRB-"}


class DamagedTree(ValueError):
    """A text that is no tree. `reason` says what is wrong, in few words."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason


@dataclasses.dataclass(frozen=True)
class Tree:
    """A constituent: a label such as "NP-SBJ", "" for brackets without one, and constituents and
    words, in order. A pre-terminal has one child, a word.
    """

    label: str
    children: tuple["Tree | str", ...]

    def __str__(self):
        """The tree in brackets, on one line."""
        return fold(self, lambda tree, inner: f"({tree.label} {' '.join(inner)})")

    @property
    def is_preterminal(self) -> bool:
        """Whether this is a part of speech and its word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def preterminals(self) -> Iterator["Tree"]:
        """Yield all parts of speech with their words, in order."""
        pending = [self]
        while pending:
            tree = pending.pop()
            if tree.is_preterminal:
                yield tree
            else:
                pending.extend(reversed(tree.children))

    def spans(
        self, counts: Callable[["Tree"], bool] = lambda preterminal: True
    ) -> list[tuple["Tree", int, int]]:
        """Return all constituents but parts of speech, outer ones first, each with the number of
        its first word and that after its last. `counts`: whether a part of speech's word counts.
        """
        spans = []
        end = 0
        # Trees, and after the children of each its place in `spans`.
        pending = [self]
        while pending:
            tree = pending.pop()
            if isinstance(tree, int):
                spans[tree] = (*spans[tree][:2], end)
            elif tree.is_preterminal:
                end += counts(tree)
            else:
                pending += [len(spans), *reversed(tree.children)]
                spans.append((tree, end, end))
        return spans

    @property
    def words(self) -> list[str]:
        """The words as they stand in the brackets, with escapes."""
        return [tree.children[0] for tree in self.preterminals()]


def fold(tree: Tree, make: Callable[[Tree, list], Any]) -> Any:
    """Fold a tree of any depth from its words upwards: `make` gets a constituent and the results of
    its children, in order. The result of a word is the word.
    """
    # Open constituents, outermost first, with the children to come, and the results of others.
    stack = [(tree, iter(tree.children), [])]
    while True:
        inner, children, results = stack[-1]
        child = next(children, None)
        if isinstance(child, Tree):
            stack.append((child, iter(child.children), []))
        elif child is not None:
            results.append(child)
        else:
            stack.pop()
            result = make(inner, results)
            if not stack:
                return result
            stack[-1][2].append(result)


def parse(text: str) -> Tree:
    """Read one tree: brackets around a label and either one word or constituents. Several trees
    side by side get a root with the label ""; unlabelled brackets around one tree are left out.
    """
    return without_empty_label(Tree("", tuple(side_by_side(text))))


def side_by_side(text: str) -> list[Tree]:
    """Return the trees of a text, of any number."""
    stack = [("", [])]
    after_opening = False
    for number, token in enumerate(TOKEN.findall(text), 1):
        if token == "(":
            stack.append(("", []))
        elif token == ")":
            if len(stack) == 1:
                raise DamagedTree(
                    "unopened bracket", f"token {number}, ')', closes a bracket that was not opened"
                )
            label, children = stack.pop()
            stack[-1][1].append(_constituent(label, children, number))
        elif after_opening:
            stack[-1] = (token, [])
        else:
            stack[-1][1].append(token)
        after_opening = token == "("
    if len(stack) > 1:
        labels = [f"({label}" for label, _ in stack[1:]]
        are = "bracket is" if len(labels) == 1 else "brackets are"
        raise DamagedTree("unclosed bracket", f"{len(labels)} {are} not closed: {' '.join(labels)}")
    [(_, children)] = stack
    if any(isinstance(child, str) for child in children):
        raise DamagedTree("word outside brackets", "a word stands outside all brackets")
    return children


def _constituent(label, children, number):
    if not children:
        raise DamagedTree(
            "empty bracket",
            f"the bracket ({label} that token {number} closes is empty: a word needs brackets of "
            "its own, around its part of speech and itself",
        )
    words = [child for child in children if isinstance(child, str)]
    if words and len(children) > 1:
        raise DamagedTree(
            "word beside others",
            f"the bracket that token {number} closes holds the word {words[0]!r} beside others: a "
            "word needs brackets of its own, around its part of speech and itself",
        )
    return Tree(label, tuple(children))


def without_empty_label(tree: Tree) -> Tree:
    """Return a tree without unlabelled brackets around a single tree."""
    while not tree.label and len(tree.children) == 1 and isinstance(tree.children[0], Tree):
        tree = tree.children[0]
    return tree


def plain_label(label: str) -> str:
    """Return a label without function tags and indices: "NP" for "NP-SBJ-1" and "NP=2". A label
    that begins with "-", such as "-LRB-", stays.
    """
    return label if label.startswith("-") else re.split("[-=]", label, maxsplit=1)[0] or label


def plain(tree: Tree) -> Tree | None:
    """Return a tree without traces, function tags and indices; None if it has no words. Spaces
    within a word, such as a no-break space, become "_".
    """
    return fold(tree, _plain)


def _plain(tree, children):
    # A parser splits words at all spaces, also at the no-break space within a number.
    joined = ("_".join(child.split()) if isinstance(child, str) else child for child in children)
    children = tuple(child for child in joined if child)
    return Tree(plain_label(tree.label), children) if children and tree.label != NOTHING else None


def unescaped(word: str) -> str:
    r"""Return a word as it stands in the text: "-LRB-" is "(", "1\/2" is "1/2", anywhere."""
    for escape, bracket in BRACKETS.items():
        word = word.replace(escape, bracket)
    return word.replace("\\/", "/").replace("\\*", "*")


def split_words(lines: Iterable[str]) -> list[str]:
    """Split each line, one sentence, by nltk's tokenizer into the words and punctuation of the Penn
    Treebank, joined by spaces. Quotes become `` and '', and "can't" the words "ca" and "n't".
    """
    with needing("parsing", "--raw_text"):
        from nltk.tokenize import TreebankWordTokenizer
    tokenizer = TreebankWordTokenizer()
    return [" ".join(tokenizer.tokenize(line)) for line in lines]
