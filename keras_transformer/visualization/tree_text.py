"""A constituency tree in letters and lines, for a terminal."""

import importlib.util
from collections.abc import Sequence

from keras_transformer.visualization.tree_layout import refuse_depth
from pipelines.trees import Tree, parse, unescaped


def require_nltk() -> None:
    """Raise ValueError if nltk, which `drawn` needs, is not installed."""
    if not importlib.util.find_spec("nltk"):
        raise ValueError(
            "--tree_format=drawn needs nltk, which is not installed: pip install "
            "'keras-transformer-nmt[parsing]'"
        )


def drawn(tree: Tree) -> str:
    """Draw a tree from its root downwards to its words, by nltk. Parts of speech are left out.

    Raises:
        ValueError: if nltk is not installed, or the tree is too deep to be drawn.
    """
    require_nltk()
    refuse_depth(tree)
    from nltk.tree import Tree as Drawable
    from nltk.tree.prettyprinter import TreePrettyPrinter

    if tree.is_preterminal:
        return unescaped(tree.children[0])
    numbers = iter(range(len(tree.words)))

    def numbered(inner):
        # Only of numbers does nltk keep the order beside constituents.
        if inner.is_preterminal:
            return next(numbers)
        return Drawable(inner.label, [numbered(child) for child in inner.children])

    words = [unescaped(word) for word in tree.words]
    text = TreePrettyPrinter(numbered(tree), words).text(unicodelines=True)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def all_drawn(trees: Sequence[str]) -> str:
    """Draw trees in brackets, each with an empty line after it; of an empty string, that alone."""
    return "".join(f"{drawn(parse(tree))}\n\n" if tree else "\n\n" for tree in trees)
