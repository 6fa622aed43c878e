"""Trees as sequences of symbols, which a translator can write, and back (Vaswani et al. 2017,
section 6.3; Vinyals et al. 2015, "Grammar as a Foreign Language").

    (S (NP (DT the) (NN cat)) (VP (VBZ sits)))   <->   (S (NP XX XX )NP (VP XX )VP )S

Words are left out, because the source has them, and every part of speech is XX. Other `LEAVES` keep
parts of speech, or words (Choe and Charniak 2016, "Parsing as Language Modeling"):

    (S (NP XX-DT XX-NN )NP (VP XX-VBZ )VP )S
    (S (NP the cat )NP (VP sits )VP )S

A model may write symbols that are no well-formed tree. `from_symbols` repairs them: it makes a tree
from any sequence, over exactly the given words:

1. `(L` opens a constituent. Anything but a bracket takes the next word: XX; XX-T, which says that
   its part of speech is T; or any word.
2. `)L` closes the innermost open L and all that is open within it. It is ignored if no L is open.
3. A symbol that would take a word is ignored when no word is left.
4. The first symbol opens the root, which is closed at the end only: what comes after it is part of
   it. If it opens nothing, the root is S, or missing around a single child.
5. Words that are left at the end go into the constituent that is then innermost.
6. A constituent without words is left out.
"""

import dataclasses
import itertools
import re
from collections.abc import Sequence

import numpy as np

from pipelines.special_ids import BOS, EOS, PAD, UNK
from pipelines.trees import WORD, Tree, unescaped
from pipelines.vocabularies.vocabulary import SPACE

ROOT = "S"
OPENING = re.compile(r"\(([^()\s]+)", re.ASCII)
CLOSING = re.compile(r"\)([^()\s]+)", re.ASCII)
LEAF = re.compile(rf"{WORD}(?:-([^()\s]+))?", re.ASCII)
# What is written for a word, by name: a function of its part of speech and of itself.
LEAVES = {
    "xx": lambda label, word: WORD,
    "parts_of_speech": lambda label, word: WORD if label == WORD else f"{WORD}-{label}",
    "words": lambda label, word: unescaped(word),
}


def to_symbols(tree: Tree, leaves: str = "xx") -> list[str]:
    """Write a `trees.plain` tree, with leaves that are a key of `LEAVES`."""
    symbols = []
    # Trees, and after the children of each the symbol that closes it.
    pending = [tree]
    while pending:
        inner = pending.pop()
        if isinstance(inner, str):
            symbols.append(inner)
        elif inner.is_preterminal:
            symbols.append(LEAVES[leaves](inner.label, inner.children[0]))
        else:
            # A constituent without a label, such as the root of several trees, has no symbols.
            symbols += [f"({inner.label}"] if inner.label else []
            pending += [f"){inner.label}"] if inner.label else []
            pending += reversed(inner.children)
    return symbols


def from_symbols(symbols: Sequence[str], words: Sequence[str]) -> Tree:
    """Make a tree over words as they stand in brackets, at least one, by the rules above. A part of
    speech that no symbol names is XX; the symbol "" is ignored. `from_symbols(to_symbols(tree),
    tree.words)` is `tree`, except for parts of speech that were not written.
    """
    words_left = list(reversed(words))
    # Labels and children of what is open, outermost first.
    stack = [(ROOT, [])]
    for number, symbol in enumerate(symbols):
        if opening := OPENING.fullmatch(symbol):
            if number == 0:
                stack.clear()
            stack.append((opening[1], []))
        elif closing := CLOSING.fullmatch(symbol):
            _close(stack, closing[1])
        elif words_left and symbol:
            leaf = LEAF.fullmatch(symbol)
            stack[-1][1].append(Tree((leaf and leaf[1]) or WORD, (words_left.pop(),)))
    stack[-1][1].extend(Tree(WORD, (word,)) for word in reversed(words_left))
    while len(stack) > 1:
        _close_innermost(stack)
    [(label, children)] = stack
    # A root that was not written is left out around a single child.
    if len(children) == 1 and not (symbols and OPENING.fullmatch(symbols[0])):
        return children[0]
    return Tree(label, tuple(children))


def _close(stack, label):
    # The root stays open.
    matches = [number for number in range(1, len(stack)) if stack[number][0] == label]
    while matches and len(stack) > matches[-1]:
        _close_innermost(stack)


def _close_innermost(stack):
    label, children = stack.pop()
    if children:
        stack[-1][1].append(Tree(label, tuple(children)))


def is_symbol(text: str, leaves: str = "xx") -> bool:
    """Whether a text without white space is a bracket with its label, or stands for a word."""
    kinds = (OPENING, CLOSING) if leaves == "words" else (OPENING, CLOSING, LEAF)
    return any(kind.fullmatch(text) for kind in kinds)


@dataclasses.dataclass(frozen=True, eq=False)
class Alphabet:
    """How the pieces of a vocabulary are read as symbols of trees.

    Attributes:
        labels: of constituents, sorted.
        opens: the number of the label that each piece opens, -1 if none, int32 (V,).
        closes: the number of the label that each piece closes, -1 if none, int32 (V,).
        parts_of_speech: of words, sorted, XX among them.
        takes: the number of the part of speech that each piece gives to the word that it takes, -1
            if it takes no word, int32 (V,). A piece that begins no word takes none.
        is_leaf: whether each piece may stand for a word or a part of one, bool (V,).
        leaves: which of `LEAVES`.
    """

    labels: tuple[str, ...]
    opens: np.ndarray
    closes: np.ndarray
    parts_of_speech: tuple[str, ...]
    takes: np.ndarray
    is_leaf: np.ndarray
    leaves: str


def alphabet_of(pieces: Sequence[str]) -> Alphabet:
    """Find the symbols among the V pieces of a vocabulary: as its tags they are adjacent, while any
    pieces of text may look like symbols. A label counts if it can be opened and closed.
    """
    symbols = _symbols(pieces)
    openings = [OPENING.fullmatch(symbol) for symbol in symbols]
    labels = sorted(match[1] for match in openings if match and f"){match[1]}" in symbols)
    if not labels:
        raise ValueError(
            "`vocabulary` must have the pieces of trees: brackets with labels. Received: "
            f"{len(pieces)} pieces without them. Name a model that was trained by --task=parsing."
        )
    opens = np.full(len(pieces), -1, np.int32)
    closes = opens.copy()
    for number, label in enumerate(labels):
        opens[symbols[f"({label}"]] = number
        closes[symbols[f"){label}"]] = number
    is_bracket = (opens >= 0) | (closes >= 0)
    words = {
        match[1] or WORD: number
        for symbol, number in symbols.items()
        if (match := LEAF.fullmatch(symbol))
    }
    parts_of_speech = tuple(sorted({WORD, *words}))
    begins = np.array([piece.startswith(SPACE) for piece in pieces])
    takes = np.where(begins & ~is_bracket, parts_of_speech.index(WORD), -1).astype(np.int32)
    for name, number in words.items():
        takes[number] = parts_of_speech.index(name)
    is_special = np.isin(np.arange(len(pieces)), (PAD, UNK, BOS, EOS))
    is_leaf = np.isin(np.arange(len(pieces)), list(words.values()))
    leaves = "words"
    if words:
        leaves = "xx" if set(words) == {WORD} else "parts_of_speech"
    return Alphabet(
        tuple(labels),
        opens,
        closes,
        parts_of_speech,
        takes,
        is_leaf if words else ~is_bracket & ~is_special,
        leaves,
    )


def _symbols(pieces):
    """Return the longest run of pieces that look like symbols, without spaces: {symbol: id}."""
    runs = itertools.groupby(
        enumerate(pieces),
        lambda piece: piece[1].startswith(SPACE) and is_symbol(piece[1].removeprefix(SPACE)),
    )
    longest = max((list(run) for is_run, run in runs if is_run), key=len, default=[])
    return {piece.removeprefix(SPACE): number for number, piece in longest}
