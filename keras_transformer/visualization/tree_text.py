"""A constituency tree in letters and lines, for a terminal."""

from pipelines.trees import Tree, unescaped


def drawn(tree: Tree) -> str:
    """Draw a tree from its root downwards to its words, by nltk. Parts of speech are left out.

    Raises:
        ValueError: if nltk is not installed.
    """
    try:
        from nltk.tree import Tree as Drawable
        from nltk.tree.prettyprinter import TreePrettyPrinter
    except ModuleNotFoundError as error:
        raise ValueError(
            "--tree_format=drawn needs nltk, which is not installed: pip install "
            "'keras-transformer-nmt[parsing]'"
        ) from error
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
