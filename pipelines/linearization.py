"""Trees as sequences of symbols, which a translator can write, and back (Vaswani et al. 2017,
section 6.3; Vinyals et al. 2015, "Grammar as a Foreign Language").

    (S (NP (DT the) (NN cat)) (VP (VBZ sits)))   <->   (S (NP XX XX )NP (VP XX )VP )S

Words are left out, because the source has them, and every part of speech is XX, or kept:

    (S (NP (DT the) (NN cat)) (VP (VBZ sits)))   <->   (S (NP XX-DT XX-NN )NP (VP XX-VBZ )VP )S

What a model writes need not be well formed. `from_symbols` makes a tree of any sequence, over
exactly the given words:

1. `(L` opens a constituent. XX takes the next word; XX-T does, and its part of speech is T.
2. `)L` closes the innermost open L and all that is open within it. Without an open L it is nothing.
3. An XX when no word is left is nothing, as is a symbol of no kind.
4. The first symbol opens the root, which is closed at the end only: what comes behind it is part of
   it. If it opens nothing, the root is S, or missing around a single child.
5. Words that are left at the end go into the constituent that is innermost then.
6. A constituent without words is left out.
"""

import dataclasses
import re
from collections.abc import Sequence

import numpy as np

from pipelines.trees import Tree
from pipelines.vocabulary import SPACE

WORD = "XX"
ROOT = "S"
OPENING = re.compile(r"\(([^()\s]+)", re.ASCII)
LEAF = re.compile(rf"{WORD}(?:-([^()\s]+))?", re.ASCII)


def to_symbols(tree: Tree, parts_of_speech: bool = False) -> list[str]:
    """Write a tree.

    Args:
        tree: `trees.plain`; labels without white space.
        parts_of_speech: whether they are kept.
    """
    if tree.is_preterminal:
        return [f"{WORD}-{tree.label}" if parts_of_speech and tree.label != WORD else WORD]
    inner = [symbol for child in tree.children for symbol in to_symbols(child, parts_of_speech)]
    return [f"({tree.label}", *inner, f"){tree.label}"]


def from_symbols(symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """Make a tree over words, by the rules above. A part of speech that no symbol says is XX.

    Args:
        symbols: any strings.
        words: of the sentence, at least one, as they stand in brackets.

    Returns:
        A tree whose words are `words`. `from_symbols(to_symbols(tree), tree.words)` is `tree` but
        for parts of speech that were not kept.
    """
    left = list(reversed(words))
    # Labels and children of what is open, outermost first.
    stack = [(ROOT, [])]
    for number, symbol in enumerate(symbols):
        if leaf := LEAF.fullmatch(symbol):
            if left:
                stack[-1][1].append(Tree(leaf[1] or WORD, (left.pop(),)))
        elif opening := OPENING.fullmatch(symbol):
            if number == 0:
                stack.clear()
            stack.append((opening[1], []))
        elif symbol.startswith(")"):
            _close(stack, symbol[1:])
    stack[-1][1].extend(Tree(WORD, (word,)) for word in reversed(left))
    while len(stack) > 1:
        _close_innermost(stack)
    return _root(*stack[0], is_written=bool(symbols and OPENING.fullmatch(symbols[0])))


def _close(stack, label):
    # The root stays open.
    inner = [number for number in range(1, len(stack)) if stack[number][0] == label]
    while inner and len(stack) > inner[-1]:
        _close_innermost(stack)


def _close_innermost(stack):
    label, children = stack.pop()
    if children:
        stack[-1][1].append(Tree(label, tuple(children)))


def _root(label, children, is_written):
    """The whole tree. A root that was not written is left out around a single child."""
    return children[0] if len(children) == 1 and not is_written else Tree(label, tuple(children))


@dataclasses.dataclass(frozen=True, eq=False)
class Alphabet:
    """Which pieces of a vocabulary are symbols of trees. All others are symbols of no kind.

    Attributes:
        labels: of constituents, sorted.
        opens: the number of the label that each piece opens, -1 if none, int32 (V,).
        closes: the number of the label that each piece closes, -1 if none, int32 (V,).
        parts_of_speech: of words, sorted: XX alone, unless they are kept.
        takes: the number of the part of speech that each piece gives to the word that it takes, -1
            if it takes none, int32 (V,).
    """

    labels: tuple[str, ...]
    opens: np.ndarray
    closes: np.ndarray
    parts_of_speech: tuple[str, ...]
    takes: np.ndarray

    @property
    def keeps_parts_of_speech(self) -> bool:
        return self.parts_of_speech != (WORD,)


def alphabet_of(pieces: Sequence[str]) -> Alphabet:
    """Find the symbols among the pieces of a vocabulary.

    A label counts if it can be opened and closed: text may have a piece that begins with a bracket.

    Args:
        pieces: V strings by id.

    Raises:
        ValueError: if there are none.
    """
    symbols = {piece[1:]: number for number, piece in enumerate(pieces) if piece[:1] == SPACE}
    found = [OPENING.fullmatch(symbol) for symbol in symbols]
    labels = sorted(match[1] for match in found if match and f"){match[1]}" in symbols)
    words = {
        match[1] or WORD: number
        for symbol, number in symbols.items()
        if (match := LEAF.fullmatch(symbol))
    }
    if not words or not labels:
        raise ValueError(
            f"`vocabulary` must have the pieces of trees: {WORD}, brackets and labels. Received: "
            f"{len(pieces)} pieces without them. Name a model that was trained by --task=parsing."
        )
    opens = np.full(len(pieces), -1, np.int32)
    closes = opens.copy()
    for number, label in enumerate(labels):
        opens[symbols[f"({label}"]] = number
        closes[symbols[f"){label}"]] = number
    takes = np.full(len(pieces), -1, np.int32)
    parts_of_speech = tuple(sorted(words))
    for number, name in enumerate(parts_of_speech):
        takes[words[name]] = number
    return Alphabet(tuple(labels), opens, closes, parts_of_speech, takes)
